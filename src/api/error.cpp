// Statuses and their texts.
#include "api/error.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "base/per_thread.hpp"
#include "layout/text/text.hpp"

namespace gapless::api {
namespace {

using Text = std::array<char, 512>;

/// The calling thread's text; null if there is no memory for one. It is no thread-local array: that would take room in
/// the static block of thread-local storage, without which a program that has other such libraries cannot load this
/// one.
Text* last_error_text() noexcept {
  try {
    return &of_this_thread<Text>();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

gapless_status fail(gapless_status status, const char* format, ...) noexcept {
  Text* const text = last_error_text();
  if (text == nullptr) return status;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text->data(), text->size(), format, arguments);
  va_end(arguments);
  return status;
}

gapless_status fail_in_job(gapless_status status, std::size_t number) noexcept {
  Text before{};
  if (const Text* const text = last_error_text()) before = *text;
  return fail(status, "job %zu: %.480s", number, before.data());
}

gapless_status fail_with_current_exception() noexcept {
  try {
    throw;
  } catch (const layout::ParseError& error) {
    return fail(GAPLESS_ERROR_PARSE, "%s", error.what());
  } catch (const std::overflow_error& error) {
    return fail(GAPLESS_ERROR_OVERFLOW, "%s", error.what());
  } catch (const std::invalid_argument& error) {
    return fail(GAPLESS_ERROR_ARGUMENT, "%s", error.what());
  } catch (const std::bad_alloc&) {
    return fail(GAPLESS_ERROR_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::length_error&) {
    return fail(GAPLESS_ERROR_OUT_OF_MEMORY, "a list is longer than memory can hold");
  } catch (const std::exception& error) {
    return fail(GAPLESS_ERROR_INTERNAL, "unexpected: %s", error.what());
  } catch (...) {
    return fail(GAPLESS_ERROR_INTERNAL, "unexpected exception");
  }
}

}  // namespace gapless::api

extern "C" {

const char* gapless_error_string(int status) {
  switch (status) {
    case GAPLESS_SUCCESS:
      return "success";
    case GAPLESS_ERROR_ARGUMENT:
      return "an argument is not valid";
    case GAPLESS_ERROR_OVERFLOW:
      return "a size or an offset does not fit in 63 bits";
    case GAPLESS_ERROR_PARSE:
      return "the text is not a type";
    case GAPLESS_ERROR_RANGE:
      return "the range is not within the packed bytes";
    case GAPLESS_ERROR_MEMORY_KIND:
      return "the kinds of memory do not go together";
    case GAPLESS_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case GAPLESS_ERROR_UNSUPPORTED:
      return "this build or machine does not support it";
    case GAPLESS_ERROR_DEVICE:
      return "the GPU runtime reported an error";
    case GAPLESS_ERROR_INTERNAL:
      return "a fault of gapless";
  }
  return "not a status of gapless";
}

const char* gapless_last_error(void) {
  const auto* const text = gapless::api::last_error_text();
  return text != nullptr ? text->data() : "out of host memory";
}

const char* gapless_version(void) { return GAPLESS_VERSION; }
}
