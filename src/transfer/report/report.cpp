#include "transfer/report/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "base/settings.hpp"
#include "layout/text/text.hpp"
#include "model/model.hpp"
#include "model/profile_file.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer {
namespace {

using nlohmann::json;

constexpr int report_version = 1;
constexpr std::size_t most_types = 200, longest_description = 160;

/// Times of one kind, and of those of which a time was predicted both sums.
struct Times {
  std::uint64_t count = 0, compared = 0;
  double ns = 0, compared_ns = 0, predicted_ns = 0;

  void add(double real, double predicted) noexcept {
    if (std::isnan(real)) return;
    ++count;
    ns += real;
    if (!std::isfinite(predicted)) return;
    ++compared;
    compared_ns += real;
    predicted_ns += predicted;
  }
  json to_json() const {
    return {{"count", count},
            {"ns", ns},
            {"compared", compared},
            {"compared_ns", compared_ns},
            {"predicted_ns", predicted_ns}};
  }
};

struct Row {
  std::uint64_t messages = 0, bytes = 0;
  Times moved, sent;
};

/// Scheme, is it received, powers of two that size and block length are below. A block length that is not known is 0.
using Key = std::tuple<std::size_t, bool, int, int>;

struct Type {
  layout::LayoutPointer layout;  ///< kept, or its address may be another one's later. Null: several types
  std::string text;
  std::array<std::uint64_t, scheme_count> messages{}, bytes{};

  json to_json() const {
    json schemes = json::object();
    for (std::size_t i = 0; i < scheme_count; ++i) {
      if (messages[i] == 0) continue;
      schemes[name(static_cast<Scheme>(i))] = {{"messages", messages[i]}, {"bytes", bytes[i]}};
    }
    if (layout == nullptr) return {{"type", "other types"}, {"size", 0}, {"schemes", std::move(schemes)}};
    return {{"type", text}, {"size", layout->size}, {"schemes", std::move(schemes)}};
  }
};

struct Report {
  std::mutex mutex;
  std::map<Key, Row> rows;
  std::map<const layout::Layout*, Type> types;
  Type others;  ///< all beyond most_types together
};

Report& report() {
  static Report* const all = new Report;  // messages may come from static destructors
  return *all;
}

int class_of(std::uint64_t bytes) noexcept { return static_cast<int>(std::bit_width(bytes)); }

Row& row_of(const Buffer& buffer, Side side, Scheme scheme, std::size_t bytes) {
  const layout::Facts& facts = buffer.type->facts;
  const layout::Offset block =
      is_contiguous(buffer) ? buffer.size() : facts.size / std::max<layout::Offset>(facts.block_count, 1);
  return report().rows[{static_cast<std::size_t>(scheme), side == Side::receiver, class_of(bytes),
                        class_of(static_cast<std::uint64_t>(block))}];
}

/// Of messages of which nothing but the size is known.
Row& native_row(std::size_t bytes, Side side) {
  return report().rows[{static_cast<std::size_t>(Scheme::native), side == Side::receiver, class_of(bytes), 0}];
}

/// Of that layout or an equal one, since programs make the same type again and again.
Type& type_of(const layout::LayoutPointer& layout) {
  auto& types = report().types;
  if (const auto found = types.find(layout.get()); found != types.end()) return found->second;
  const auto equal = std::ranges::find_if(types, [&](const auto& each) { return *each.second.layout == *layout; });
  if (equal != types.end()) {
    auto node = types.extract(equal);
    node.key() = layout.get();
    node.mapped().layout = layout;
    return types.insert(std::move(node)).position->second;
  }
  if (types.size() == most_types) return report().others;
  std::string text = layout::describe(*layout).substr(0, longest_description);
  return types.emplace(layout.get(), Type{layout, std::move(text), {}, {}}).first->second;
}

void count_type(const Buffer& buffer, Scheme scheme, std::size_t bytes) {
  Type& type = type_of(buffer.type->layout);
  ++type.messages[static_cast<std::size_t>(scheme)];
  type.bytes[static_cast<std::size_t>(scheme)] += bytes;
}

template <class Add>
void add(Add add_what) noexcept {
  if (!report_wanted()) return;
  try {
    const std::lock_guard lock(report().mutex);
    add_what();
  } catch (const std::exception&) {
    // Without memory a report is not complete.
  }
}

json rows_to_json() {
  json rows = json::array();
  for (const auto& [key, row] : report().rows) {
    if (row.messages == 0 && row.moved.count == 0 && row.sent.count == 0) continue;  // all taken back
    const auto& [scheme, is_received, bytes_class, block_class] = key;
    rows.push_back({{"scheme", name(static_cast<Scheme>(scheme))},
                    {"side", is_received ? "receiver" : "sender"},
                    {"bytes_below", std::uint64_t{1} << bytes_class},
                    {"block_below", block_class == 0 ? 0 : std::uint64_t{1} << block_class},
                    {"messages", row.messages},
                    {"bytes", row.bytes},
                    {"moved", row.moved.to_json()},
                    {"sent", row.sent.to_json()}});
  }
  return rows;
}

json types_to_json() {
  json types = json::array();
  for (const auto& [layout, type] : report().types) types.push_back(type.to_json());
  if (json others = report().others.to_json(); !others["schemes"].empty()) types.push_back(std::move(others));
  return types;
}

void write(int rank, int ranks, const char* version) {
  const std::lock_guard lock(report().mutex);
  const model::Measured* const measured = model::profile().measured;
  const json content = {{"gapless_report", report_version},
                        {"rank", rank},
                        {"ranks", ranks},
                        {"library", model::library_name(version)},
                        {"profile", measured != nullptr ? measured->source : "built-in"},
                        {"pair", model::pair_names[static_cast<std::size_t>(model::profile().pair)]},
                        {"rows", rows_to_json()},
                        {"types", types_to_json()}};
  const std::string path = std::string(settings().report.data()) + '.' + std::to_string(rank) + ".json";
  // Written beside and renamed, so that no reader finds a part of a report.
  const std::string beside = path + '.' + std::to_string(::getpid());
  std::ofstream file(beside);
  file << content.dump(1, ' ', false, json::error_handler_t::replace) << '\n';
  file.close();
  if (file && std::rename(beside.c_str(), path.c_str()) == 0) return;
  std::remove(beside.c_str());
  warn_about_report(path, "the report cannot be written there");
}

}  // namespace

bool report_wanted() noexcept { return settings().report.front() != '\0'; }

void report_moved(const Buffer& buffer, Side side, Scheme scheme, std::size_t bytes, double ns) noexcept {
  report_moved(buffer, side, scheme, bytes, ns, predict_movement_ns(scheme, buffer, side));
}

void report_moved(const Buffer& buffer, Side side, Scheme scheme, std::size_t bytes, double ns,
                  double predicted_ns) noexcept {
  add([&] {
    Row& row = row_of(buffer, side, scheme, bytes);
    ++row.messages;
    row.bytes += bytes;
    row.moved.add(ns, predicted_ns);
    count_type(buffer, scheme, bytes);
  });
}

void record_moved(const Buffer& buffer, Side side, Scheme scheme) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  record(scheme, bytes);
  if (report_wanted()) report_moved(buffer, side, scheme, bytes, untimed_ns);
}

void report_send(const Buffer& buffer, Scheme scheme, double ns, double predicted_ns) noexcept {
  add([&] {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    row_of(buffer, Side::sender, scheme, bytes).sent.add(ns, predicted_ns);
    if (scheme == Scheme::native) count_type(buffer, scheme, bytes);
  });
}

void report_native(std::size_t bytes, Side side) noexcept {
  add([&] {
    Row& row = native_row(bytes, side);
    ++row.messages;
    row.bytes += bytes;
  });
}

void take_back_native(std::size_t bytes, Side side) noexcept {
  add([&] {
    Row& row = native_row(bytes, side);
    --row.messages;
    row.bytes -= bytes;
  });
}

void write_report(int rank, int ranks, const char* version) noexcept {
  if (!report_wanted()) return;
  try {
    write(rank, ranks, version);
  } catch (const std::exception&) {
    // Without memory there is no report.
  }
}

}  // namespace gapless::transfer
