#include "hone/schedule/step.h"

#include <charconv>

#include "hone/base/hash.h"

namespace hone::schedule {
namespace {

// One list of fields per step: printing and parsing both derive from it.
template <typename S, typename F>
void for_each_field(S& step, F&& f) {
  using T = std::remove_const_t<S>;
  if constexpr (std::is_same_v<T, Split>) {
    f(step.stage), f(step.loop), f(step.lengths), f(step.tail);
  } else if constexpr (std::is_same_v<T, Fuse> || std::is_same_v<T, Reorder>) {
    f(step.stage), f(step.loops);
  } else if constexpr (std::is_same_v<T, ComputeAt> || std::is_same_v<T, StoreAt>) {
    f(step.stage), f(step.at), f(step.loop);
  } else if constexpr (std::is_same_v<T, Fold>) {
    f(step.stage), f(step.axis), f(step.factor);
  } else if constexpr (std::is_same_v<T, RFactor>) {
    f(step.stage), f(step.axis), f(step.factor), f(step.parts);
  } else if constexpr (std::is_same_v<T, OnlineSoftmax>) {
    f(step.stage), f(step.factor), f(step.tiles);
  } else if constexpr (std::is_same_v<T, Inline> || std::is_same_v<T, CacheWrite> ||
                       std::is_same_v<T, SplitUpdates>) {
    f(step.stage);
  } else if constexpr (std::is_same_v<T, Winograd>) {
    f(step.stage), f(step.outputs);
  } else if constexpr (std::is_same_v<T, Strassen>) {
    f(step.stage), f(step.rows), f(step.lanes);
  } else if constexpr (std::is_same_v<T, Narrow>) {
    f(step.stage), f(step.dtype);
  } else if constexpr (std::is_same_v<T, CacheRead>) {
    f(step.buffer), f(step.reader);
  } else if constexpr (std::is_same_v<T, Im2col>) {
    f(step.stage), f(step.buffer);
  } else if constexpr (std::is_same_v<T, SetScope>) {
    f(step.stage), f(step.scope);
  } else if constexpr (std::is_same_v<T, Layout>) {
    f(step.stage), f(step.dims);
  } else if constexpr (std::is_same_v<T, Prefetch>) {
    f(step.stage), f(step.buffer), f(step.loop), f(step.distance);
  } else if constexpr (std::is_same_v<T, Bind>) {
    f(step.stage), f(step.loop), f(step.level);
  } else if constexpr (std::is_same_v<T, Pipeline>) {
    f(step.stage), f(step.depth), f(step.transport);
  } else if constexpr (std::is_same_v<T, MatrixProduct>) {
    f(step.stage), f(step.rows), f(step.columns), f(step.multiple);
  } else if constexpr (std::is_same_v<T, Tensorize>) {
    f(step.stage), f(step.rows), f(step.columns), f(step.terms), f(step.rounding);
  } else if constexpr (std::is_same_v<T, Lift>) {
    f(step.stage), f(step.loops), f(step.vector);
  } else if constexpr (std::is_same_v<T, BlockBody>) {
    f(step.stage), f(step.threads);
  } else {
    f(step.stage), f(step.loop);
  }
}

constexpr std::string_view kNames[] = {
    "split",          "fuse",           "reorder",  "compute_at",    "store_at",  "fold",
    "inline",         "cache_read",     "im2col",   "cache_write",   "scope",     "layout",
    "rfactor",        "online_softmax", "winograd", "strassen",      "narrow",    "sink",
    "vectorize",      "unroll",         "parallel", "prefetch",      "bind",      "pipeline",
    "matrix_product", "tensorize",      "lift",     "split_updates", "block_body"};
static_assert(std::size(kNames) == std::variant_size_v<Step>);
constexpr std::string_view kTailNames[] = {"mask", "peel", "pad", "test", "whole"};
constexpr std::string_view kLevelNames[] = {"thread", "warp", "lane"};
constexpr std::string_view kTransportNames[] = {"async", "registers"};
constexpr ir::Scope kScopes[] = {ir::Scope::kGlobal,   ir::Scope::kThread, ir::Scope::kStack,
                                 ir::Scope::kRegister, ir::Scope::kShared, ir::Scope::kFragment};

struct Printer {
  std::string text;
  void separate() {
    if (text.back() != '(') text += ", ";
  }
  void operator()(const std::string& s) { separate(), text += s; }
  void operator()(int64_t n) { separate(), text += std::to_string(n); }
  void operator()(Tail t) { separate(), text += kTailNames[static_cast<int>(t)]; }
  void operator()(Parts p) {
    if (p == Parts::kStrided) separate(), text += "strided";
  }
  void operator()(KeyTiles t) {
    if (t == KeyTiles::kWhole) separate(), text += "whole";
  }
  void operator()(Rounding r) {
    if (r == Rounding::kTf32) separate(), text += "tf32";
  }
  void operator()(ThreadLevel level) { separate(), text += kLevelNames[static_cast<int>(level)]; }
  void operator()(Transport t) { separate(), text += kTransportNames[static_cast<int>(t)]; }
  void operator()(ir::Scope s) { separate(), text += ir::scope_name(s); }
  void operator()(DType t) { separate(), text += dtype_name(t); }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    separate(), text += fmt::format("[{}]", fmt::join(list, ", "));
  }
};

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

// Splits at commas that are not inside brackets.
std::vector<std::string_view> split_arguments(std::string_view s) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i == s.size() || (s[i] == ',' && depth == 0)) {
      out.push_back(trim(s.substr(start, i - start)));
      start = i + 1;
    } else {
      depth += s[i] == '[' ? 1 : s[i] == ']' ? -1 : 0;
    }
  }
  return out;
}

struct Parser {
  std::vector<std::string_view> arguments;
  size_t next = 0;
  Status status = {};

  void fail(std::string_view expected, std::string_view found) {
    if (status.ok()) status = invalid("expected {}, found '{}'", expected, found);
  }
  std::string_view take() {
    if (next >= arguments.size()) {
      fail("another argument", ")");
      return {};
    }
    return arguments[next++];
  }
  void read(std::string_view text, std::string& value) {
    if (text.empty() || text.find_first_of("[]() ") != std::string_view::npos)
      return fail("a name", text);
    value = text;
  }
  void read(std::string_view text, int64_t& value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) fail("an integer", text);
  }
  void operator()(std::string& s) { read(take(), s); }
  void operator()(int64_t& n) { read(take(), n); }
  void operator()(Tail& tail) {
    if (next == arguments.size()) return;  // the last argument of a split may be left out: mask
    const std::string_view text = take();
    const auto* const found = std::ranges::find(kTailNames, text);
    if (found == std::end(kTailNames)) return fail("mask, peel, pad, test or whole", text);
    tail = static_cast<Tail>(found - kTailNames);
  }
  // The last argument, if it is there: the one value of an enumeration that has a name.
  template <typename T>
  void read_last(std::string_view name, T named, T& value) {
    if (next == arguments.size()) return;
    const std::string_view text = take();
    if (text != name) return fail(name, text);
    value = named;
  }
  void operator()(Parts& parts) { read_last("strided", Parts::kStrided, parts); }
  void operator()(KeyTiles& tiles) { read_last("whole", KeyTiles::kWhole, tiles); }
  void operator()(Rounding& rounding) { read_last("tf32", Rounding::kTf32, rounding); }
  void operator()(ThreadLevel& level) {
    const std::string_view text = take();
    const auto* const found = std::ranges::find(kLevelNames, text);
    if (found == std::end(kLevelNames)) return fail("thread, warp or lane", text);
    level = static_cast<ThreadLevel>(found - kLevelNames);
  }
  void operator()(Transport& transport) {
    const std::string_view text = take();
    const auto* const found = std::ranges::find(kTransportNames, text);
    if (found == std::end(kTransportNames)) return fail("async or registers", text);
    transport = static_cast<Transport>(found - kTransportNames);
  }
  void operator()(ir::Scope& scope) {
    const std::string_view text = take();
    for (const ir::Scope s : kScopes) {
      if (text == ir::scope_name(s)) return void(scope = s);
    }
    fail("a scope", text);
  }
  void operator()(DType& dtype) {
    const std::string_view text = take();
    const std::optional<DType> parsed = parse_dtype(text);
    if (!parsed) return fail("an element type", text);
    dtype = *parsed;
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    std::string_view text = take();
    if (text.size() < 2 || text.front() != '[' || text.back() != ']')
      return fail("a list in brackets", text);
    text = trim(text.substr(1, text.size() - 2));
    if (text.empty()) return;
    for (const std::string_view item : split_arguments(text)) read(item, list.emplace_back());
  }
};

template <size_t I = 0>
Step default_step(size_t index) {
  if constexpr (I + 1 < std::variant_size_v<Step>) {
    if (index != I) return default_step<I + 1>(index);
  }
  return std::variant_alternative_t<I, Step>();
}

Result<Step> parse_step(std::string_view line) {
  const size_t open = line.find('(');
  if (open == std::string_view::npos || line.back() != ')')
    return invalid("expected name(arguments)");
  const std::string_view name = trim(line.substr(0, open));
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    Step step = default_step(i);
    Parser parser{split_arguments(line.substr(open + 1, line.size() - open - 2))};
    std::visit([&](auto& s) { for_each_field(s, parser); }, step);
    if (parser.status.ok() && parser.next != parser.arguments.size()) {
      parser.fail("no more arguments", parser.arguments[parser.next]);
    }
    if (!parser.status.ok()) return parser.status;
    return step;
  }
  return invalid("unknown step '{}'", name);
}

}  // namespace

std::string to_string(const Step& step) {
  Printer printer{std::string(kNames[step.index()]) + "("};
  std::visit([&](const auto& s) { for_each_field(s, printer); }, step);
  return printer.text + ")";
}

std::string to_string(const Steps& steps) {
  std::string text;
  for (const Step& step : steps) text += to_string(step) + "\n";
  return text;
}

Result<Steps> parse_steps(std::string_view text) {
  Steps steps;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (line.empty()) continue;
    Result<Step> step = parse_step(line);
    if (!step.ok()) return invalid("line {}: {}", number, step.status().message());
    steps.push_back(*std::move(step));
  }
  return steps;
}

uint64_t hash(const Steps& steps) { return hash_string(to_string(steps)); }

std::string algorithm_of(const Steps& steps) {
  std::string name = "direct", bits;
  for (const Step& step : steps) {
    if (std::holds_alternative<Im2col>(step)) name = "im2col";
    if (const auto* winograd = std::get_if<Winograd>(&step))
      name = fmt::format("winograd_{}", winograd->outputs);
    if (std::holds_alternative<Strassen>(step)) name = "strassen";
    if (const auto* narrow = std::get_if<Narrow>(&step))
      bits = fmt::format("_{}", dtype_name(narrow->dtype));
    const auto* matrix = std::get_if<Tensorize>(&step);
    if (matrix != nullptr && matrix->rounding == Rounding::kTf32) bits = "_tf32";
  }
  return name + bits;
}

}  // namespace hone::schedule
