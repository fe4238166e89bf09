// A recursive-descent parser of the text form: one function a grammar rule, one entry a constructor.
#include "layout/text/text.hpp"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "layout/datatype/names.hpp"

namespace gapless::layout {

namespace {

/// Nesting beyond this is refused: the parser's own stack is what it protects.
constexpr int deepest_nesting = 200;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Datatype whole() {
    Datatype type = datatype();
    skip_space();
    if (position_ != text_.size()) fail("the end");
    return type;
  }

 private:
  static std::string at(std::size_t position, const std::string& message) {
    return "column " + std::to_string(position + 1) + ": " + message;
  }
  [[noreturn]] static void fail_at(std::size_t position, const std::string& message) {
    throw ParseError(at(position, message));
  }
  [[noreturn]] void fail(const std::string& expected) const { fail_at(position_, "expected " + expected); }

  void skip_space() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\t' || text_[position_] == '\n')) {
      ++position_;
    }
  }

  bool accept(char character) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != character) return false;
    ++position_;
    return true;
  }

  void expect(char character) {
    if (!accept(character)) fail(std::string("'") + character + "'");
  }

  void comma() { expect(','); }

  std::string_view word(const char* expected) {
    skip_space();
    const std::size_t begin = position_;
    const auto belongs = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    while (position_ < text_.size() && belongs(text_[position_])) ++position_;
    if (position_ == begin) fail(expected);
    return text_.substr(begin, position_ - begin);
  }

  void begin_argument() {
    skip_space();
    arguments_.push_back({position_, {}});
  }

  Offset number() {
    skip_space();
    Offset value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("a number of at most 63 bits");
    if (error != std::errc()) fail("a number");
    position_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  template <class Item>
  auto list(Item item) {
    std::vector<decltype(item())> items;
    begin_argument();
    expect('[');
    if (accept(']')) return items;
    do {
      skip_space();
      arguments_.back().items.push_back(position_);
      items.push_back(item());
    } while (accept(','));
    if (!accept(']')) fail("',' or ']'");
    return items;
  }

  std::vector<Offset> numbers() {
    return list([this] { return number(); });
  }

  Offset number_then_comma() {
    begin_argument();
    const Offset value = number();
    comma();
    return value;
  }

  std::vector<Offset> numbers_then_comma() {
    std::vector<Offset> values = numbers();
    comma();
    return values;
  }

  ArrayOrder order() {
    const std::string_view name = word("'c' or 'fortran'");
    if (name == "c") return ArrayOrder::c;
    if (name == "fortran") return ArrayOrder::fortran;
    fail_at(position_ - name.size(), "expected 'c' or 'fortran'");
  }

  Distribution distribution() {
    const std::string_view name = word("'none', 'block' or 'cyclic'");
    if (name == "none") return Distribution::none;
    if (name == "block") return Distribution::block;
    if (name == "cyclic") return Distribution::cyclic;
    fail_at(position_ - name.size(), "expected 'none', 'block' or 'cyclic'");
  }

  Offset distribution_argument() {
    skip_space();
    if (position_ < text_.size() && text_[position_] == 'd') {
      const std::string_view name = word("'default'");
      if (name != "default") fail_at(position_ - name.size(), "expected 'default' or a number");
      return default_distribution_argument;
    }
    return number();
  }

  using Rule = Datatype (Parser::*)();
  struct Constructor {
    std::string_view name;
    Rule rule;
  };
  static const Constructor constructors[];

  Datatype datatype() {
    if (++depth_ > deepest_nesting) fail_at(position_, "nested too deeply");
    skip_space();
    if (position_ < text_.size() && text_[position_] >= 'A' && text_[position_] <= 'Z')
      fail("a datatype in small letters and without MPI_, such as int");
    const std::string_view name = word("a datatype");
    const std::size_t begin = position_ - name.size();
    Datatype type = named_or_constructed(name, begin);
    --depth_;
    return type;
  }

  Datatype named_or_constructed(std::string_view name, std::size_t begin);

  /// Where the text has what a constructor refuses.
  std::size_t position_of(const ArgumentError& refused) const {
    const Argument& argument = arguments_.at(refused.argument);
    return refused.item < argument.items.size() ? argument.items[refused.item] : argument.begin;
  }

  Datatype parse_dup() { return datatype(); }
  Datatype parse_contiguous() {
    const Offset count = number_then_comma();
    return contiguous(count, datatype());
  }
  Datatype parse_vector() {
    const Offset count = number_then_comma(), length = number_then_comma(), stride = number_then_comma();
    return vector(count, length, stride, datatype());
  }
  Datatype parse_hvector() {
    const Offset count = number_then_comma(), length = number_then_comma(), stride = number_then_comma();
    return hvector(count, length, stride, datatype());
  }
  Datatype parse_indexed() {
    const std::vector<Offset> lengths = numbers_then_comma(), displacements = numbers_then_comma();
    return indexed(lengths, displacements, datatype());
  }
  Datatype parse_hindexed() {
    const std::vector<Offset> lengths = numbers_then_comma(), displacements = numbers_then_comma();
    return hindexed(lengths, displacements, datatype());
  }
  Datatype parse_indexed_block() {
    const Offset length = number_then_comma();
    const std::vector<Offset> displacements = numbers_then_comma();
    return indexed_block(length, displacements, datatype());
  }
  Datatype parse_hindexed_block() {
    const Offset length = number_then_comma();
    const std::vector<Offset> displacements = numbers_then_comma();
    return hindexed_block(length, displacements, datatype());
  }
  Datatype parse_struct() {
    const std::vector<Offset> lengths = numbers_then_comma(), displacements = numbers_then_comma();
    return structure(lengths, displacements, list([this] { return datatype(); }));
  }
  Datatype parse_subarray() {
    const std::vector<Offset> sizes = numbers_then_comma(), subsizes = numbers_then_comma(),
                              starts = numbers_then_comma();
    const ArrayOrder array_order = order();
    comma();
    return subarray(sizes, subsizes, starts, array_order, datatype());
  }
  Datatype parse_darray() {
    const Offset processes = number_then_comma(), rank = number_then_comma();
    const std::vector<Offset> sizes = numbers_then_comma();
    const std::vector<Distribution> distributions = list([this] { return distribution(); });
    comma();
    const std::vector<Offset> arguments = list([this] { return distribution_argument(); });
    comma();
    const std::vector<Offset> grid = numbers_then_comma();
    const ArrayOrder array_order = order();
    comma();
    return darray(processes, rank, sizes, distributions, arguments, grid, array_order, datatype());
  }
  Datatype parse_resized() {
    const Datatype child = datatype();
    comma();
    const Offset lower_bound = number_then_comma();
    return resized(child, lower_bound, number());
  }
  Datatype parse_value_index() {
    const Datatype value = datatype();
    comma();
    return value_and_index(value, datatype());
  }

  /// Where one argument of a constructor begins, and each item if it is a list.
  struct Argument {
    std::size_t begin;
    std::vector<std::size_t> items;
  };

  std::string_view text_;
  std::size_t position_ = 0;
  std::vector<Argument> arguments_;  ///< numbers and lists of the constructor that is being read
  int depth_ = 0;
};

const Parser::Constructor Parser::constructors[] = {
    {"dup", &Parser::parse_dup},
    {"contiguous", &Parser::parse_contiguous},
    {"vector", &Parser::parse_vector},
    {"hvector", &Parser::parse_hvector},
    {"indexed", &Parser::parse_indexed},
    {"hindexed", &Parser::parse_hindexed},
    {"indexed_block", &Parser::parse_indexed_block},
    {"hindexed_block", &Parser::parse_hindexed_block},
    {"struct", &Parser::parse_struct},
    {"subarray", &Parser::parse_subarray},
    {"darray", &Parser::parse_darray},
    {"resized", &Parser::parse_resized},
    {"value_index", &Parser::parse_value_index},
};

Datatype Parser::named_or_constructed(std::string_view name, std::size_t begin) {
  for (const Constructor& constructor : constructors) {
    if (constructor.name != name) continue;
    expect('(');
    std::vector<Argument> outer = std::exchange(arguments_, {});
    try {
      Datatype type = (this->*constructor.rule)();
      expect(')');
      arguments_ = std::move(outer);
      return type;
    } catch (const ParseError&) {
      throw;
    } catch (const ParsedOverflow&) {
      throw;
    } catch (const ArgumentError& error) {
      fail_at(position_of(error), error.what());
    } catch (const std::invalid_argument& error) {
      fail_at(begin, error.what());
    } catch (const std::overflow_error& error) {
      throw ParsedOverflow(at(begin, error.what()));
    }
  }
  if (std::optional<Datatype> basic = basic_datatype(name)) return *std::move(basic);
  fail_at(begin, "no datatype or constructor is called '" + std::string(name) + "'");
}

}  // namespace

Datatype parse_datatype(std::string_view text) { return Parser(text).whole(); }

}  // namespace gapless::layout
