// The tokens of a schedule: one per step, unrolled loops of one stage that follow each other are
// one. A token is the step's kind and the tag of its stage, one-hot, the stage's place among all,
// and up to 14 numbers that depend on the kind. A kind of step without a function here does not
// compile.
#include <algorithm>
#include <array>

#include "hone/cost/inputs/input_parts.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::cost {
namespace {

using schedule::StageState;

// The order is part of kInputVersion. Narrow is a kind of scope: both say how a result is kept.
// Im2col is a kind of cache_read: both copy what a stage reads. Sink is a kind of reorder: both say
// which loop is inside of which. OnlineSoftmax is a kind of rfactor: both sum in parts;
// Strassen one of winograd: tiles of 1. Pipeline is a kind of fold: both make a ring.
enum class Kind : uint8_t {
  kSplit,
  kFuse,
  kReorder,
  kComputeAt,
  kStoreAt,
  kFold,
  kInline,
  kCacheRead,
  kCacheWrite,
  kScope,
  kLayout,
  kRFactor,
  kWinograd,
  kVectorize,
  kUnroll,
  kParallel,
  kPrefetch,
};
constexpr std::array<std::string_view, 17> kKindNames = {
    "split",    "fuse",       "reorder",     "compute_at", "store_at", "fold",
    "inline",   "cache_read", "cache_write", "scope",      "layout",   "rfactor",
    "winograd", "vectorize",  "unroll",      "parallel",   "prefetch"};
constexpr size_t kKinds = kKindNames.size();

Kind kind_of(const schedule::Split&) { return Kind::kSplit; }
Kind kind_of(const schedule::Fuse&) { return Kind::kFuse; }
Kind kind_of(const schedule::Reorder&) { return Kind::kReorder; }
Kind kind_of(const schedule::ComputeAt&) { return Kind::kComputeAt; }
Kind kind_of(const schedule::StoreAt&) { return Kind::kStoreAt; }
Kind kind_of(const schedule::Fold&) { return Kind::kFold; }
Kind kind_of(const schedule::Inline&) { return Kind::kInline; }
Kind kind_of(const schedule::CacheRead&) { return Kind::kCacheRead; }
Kind kind_of(const schedule::Im2col&) { return Kind::kCacheRead; }
Kind kind_of(const schedule::CacheWrite&) { return Kind::kCacheWrite; }
Kind kind_of(const schedule::SetScope&) { return Kind::kScope; }
Kind kind_of(const schedule::Narrow&) { return Kind::kScope; }
Kind kind_of(const schedule::Layout&) { return Kind::kLayout; }
Kind kind_of(const schedule::RFactor&) { return Kind::kRFactor; }
Kind kind_of(const schedule::OnlineSoftmax&) { return Kind::kRFactor; }
Kind kind_of(const schedule::Winograd&) { return Kind::kWinograd; }
Kind kind_of(const schedule::Strassen&) { return Kind::kWinograd; }
Kind kind_of(const schedule::Sink&) { return Kind::kReorder; }
Kind kind_of(const schedule::Vectorize&) { return Kind::kVectorize; }
Kind kind_of(const schedule::Unroll&) { return Kind::kUnroll; }
Kind kind_of(const schedule::Parallel&) { return Kind::kParallel; }
Kind kind_of(const schedule::Bind&) { return Kind::kParallel; }
Kind kind_of(const schedule::MatrixProduct&) { return Kind::kCacheRead; }
Kind kind_of(const schedule::Tensorize&) { return Kind::kVectorize; }
Kind kind_of(const schedule::Lift&) { return Kind::kVectorize; }
Kind kind_of(const schedule::SplitUpdates&) { return Kind::kRFactor; }
Kind kind_of(const schedule::BlockBody&) { return Kind::kParallel; }
Kind kind_of(const schedule::Prefetch&) { return Kind::kPrefetch; }
Kind kind_of(const schedule::Pipeline&) { return Kind::kFold; }

constexpr size_t kArguments = 14;
constexpr size_t kTokenSize = kKinds + kNumTags + 1 + kArguments;

double log_count(double x) { return std::log2(1 + x); }

// Appends a step's arguments; what does not fit is left out.
class Arguments {
 public:
  explicit Arguments(float* to) : to_(to) {}
  void plain(double value) {
    if (next_ < kArguments) to_[next_++] = static_cast<float>(value);
  }
  void flag(bool value) { plain(value ? 1 : 0); }
  void count(double value) { plain(log_count(value)); }

 private:
  float* to_;
  size_t next_ = 0;
};

// A loop that is there after all steps, or one that was split or fused.
int find_any_loop(const StageState& stage, std::string_view name) {
  for (size_t i = 0; i < stage.loops.size(); ++i) {
    if (stage.loops[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Returns the depth of a loop by its name: "oc" has 0, "oc.1" has 2; a fused loop has that of its
// first part.
int level_of(std::string_view loop) {
  const size_t dot = loop.find('.');
  return dot + 1 < loop.size() && dot != loop.npos ? loop[dot + 1] - '0' + 1 : 0;
}

class TokenWriter {
 public:
  TokenWriter(const space::Candidate& candidate, float* to)
      : candidate_(candidate), winograd_(winograd_stages(candidate)), to_(to) {}

  void write(const schedule::Step& step) {
    to_[std::visit([](const auto& s) { return static_cast<size_t>(kind_of(s)); }, step)] = 1;
    stage_ = std::visit([&](const auto& s) { return find_stage(s); }, step);
    if (stage_ >= 0) {
      const auto s = static_cast<size_t>(stage_);
      const OperatorTag tag = tag_of(stage(s).info->stage, static_cast<bool>(winograd_[s]));
      to_[kKinds + static_cast<size_t>(tag)] = 1;
      to_[kKinds + kNumTags] =
          static_cast<float>(s + 1) / static_cast<float>(candidate_.state.stages.size());
    }
    Arguments out(to_ + kKinds + kNumTags + 1);
    std::visit([&](const auto& s) { write_arguments(s, out); }, step);
  }
  // Several steps as the token of the first.
  void write(std::span<const schedule::Step> unrolls) {
    write(unrolls[0]);
    double product = 1;
    for (const schedule::Step& step : unrolls)
      product *= extent(std::get<schedule::Unroll>(step).loop);
    Arguments out(to_ + kKinds + kNumTags + 1);
    out.count(static_cast<double>(unrolls.size()));
    out.count(product);
    for (const schedule::Step& step : unrolls) {
      out.count(extent(std::get<schedule::Unroll>(step).loop));
    }
  }
  void next() { to_ += kTokenSize; }

 private:
  [[nodiscard]] const StageState& stage(size_t s) const { return candidate_.state.stages[s]; }
  [[nodiscard]] int find_stage(const schedule::CacheRead& step) const {
    return candidate_.state.find_stage(step.reader);
  }
  template <typename StepType>
  [[nodiscard]] int find_stage(const StepType& step) const {
    return candidate_.state.find_stage(step.stage);
  }
  // Returns the extent of a loop of the step's stage; 0 if there is none of that name.
  [[nodiscard]] double extent(std::string_view loop) const {
    if (stage_ < 0) return 0;
    const auto s = static_cast<size_t>(stage_);
    const int found = find_any_loop(stage(s), loop);
    return found < 0 ? 0
                     : static_cast<double>(
                           candidate_.bounds.stages[s].loops[static_cast<size_t>(found)].extent);
  }
  [[nodiscard]] bool reduces(std::string_view loop) const {
    const int found = stage_ < 0 ? -1 : find_any_loop(stage(static_cast<size_t>(stage_)), loop);
    return found >= 0 &&
           stage(static_cast<size_t>(stage_)).loops[static_cast<size_t>(found)].reduce;
  }

  void write_arguments(const schedule::Split& step, Arguments& out) const {
    double inner = 1;
    for (const int64_t length : step.lengths) inner *= static_cast<double>(length);
    out.count(extent(step.loop));
    out.count(extent(step.loop + ".0"));
    out.flag(reduces(step.loop));
    out.flag(step.tail == schedule::Tail::kMask);
    out.flag(step.tail == schedule::Tail::kPeel);
    out.flag(step.tail == schedule::Tail::kPad);
    out.count(inner);
    for (auto length = step.lengths.rbegin(); length != step.lengths.rend(); ++length)
      out.count(static_cast<double>(*length));
  }
  void write_arguments(const schedule::Fuse& step, Arguments& out) const {
    out.count(static_cast<double>(step.loops.size()));
    for (const std::string& loop : step.loops) out.count(extent(loop));
  }
  void write_arguments(const schedule::Reorder& step, Arguments& out) const {
    out.count(static_cast<double>(step.loops.size()));
    for (const std::string& loop : step.loops)
      out.plain((reduces(loop) ? -1 : 1) * (1 + level_of(loop)));
  }
  void write_place(std::string_view at, std::string_view loop, Arguments& out) const {
    const int consumer = candidate_.state.find_stage(at);
    if (consumer < 0) return;
    const auto c = static_cast<size_t>(consumer);
    const int leaf = stage(c).find_loop(loop);
    const int place = leaf < 0 ? -1 : stage(c).find_leaf(leaf);
    double outside = 1, inside = 1;
    for (size_t i = 0; i < stage(c).order.size(); ++i) {
      const auto index = static_cast<size_t>(stage(c).order[i]);
      (static_cast<int>(i) <= place ? outside : inside) *=
          static_cast<double>(candidate_.bounds.stages[c].loops[index].extent);
    }
    out.count(place + 1);
    out.count(outside);
    out.count(inside);
    out.plain(static_cast<double>(consumer + 1) /
              static_cast<double>(candidate_.state.stages.size()));
  }
  void write_arguments(const schedule::ComputeAt& step, Arguments& out) const {
    write_place(step.at, step.loop, out);
  }
  void write_arguments(const schedule::StoreAt& step, Arguments& out) const {
    write_place(step.at, step.loop, out);
  }
  void write_arguments(const schedule::Fold& step, Arguments& out) const {
    out.count(static_cast<double>(step.factor));
  }
  void write_arguments(const schedule::Pipeline& step, Arguments& out) const {
    out.count(static_cast<double>(step.depth));
    out.plain(1 + static_cast<double>(step.transport));
  }
  void write_arguments(const schedule::Lift& step, Arguments& out) const {
    out.count(static_cast<double>(step.vector));
  }
  void write_arguments(const schedule::SplitUpdates&, Arguments&) const {}
  void write_arguments(const schedule::BlockBody& step, Arguments& out) const {
    out.count(static_cast<double>(step.threads));
  }
  void write_arguments(const schedule::Inline&, Arguments&) const {}
  void write_arguments(const schedule::CacheRead&, Arguments&) const {}
  void write_arguments(const schedule::Im2col&, Arguments& out) const { out.flag(true); }
  void write_arguments(const schedule::CacheWrite&, Arguments&) const {}
  void write_arguments(const schedule::SetScope& step, Arguments& out) const {
    for (const ir::Scope scope :
         {ir::Scope::kGlobal, ir::Scope::kThread, ir::Scope::kStack, ir::Scope::kRegister})
      out.flag(step.scope == scope);
  }
  void write_arguments(const schedule::Narrow& step, Arguments& out) const {
    for (int i = 0; i < 4; ++i) out.flag(false);  // no scope
    out.plain(static_cast<double>(dtype_bytes(step.dtype)));
  }
  // "oc/16%2": 16, 2; what has neither is one whole axis.
  void write_arguments(const schedule::Layout& step, Arguments& out) const {
    out.count(static_cast<double>(step.dims.size()));
    for (const std::string& dim : step.dims) {
      const size_t slash = dim.find('/'), percent = dim.find('%');
      const auto number = [&](size_t at) {
        return at == dim.npos ? 0.0 : std::strtod(dim.c_str() + at + 1, nullptr);
      };
      out.plain(log_count(number(slash)) - log_count(number(percent)));
    }
  }
  void write_arguments(const schedule::RFactor& step, Arguments& out) const {
    out.count(static_cast<double>(step.factor));
    out.flag(step.parts == schedule::Parts::kStrided);
  }
  void write_arguments(const schedule::OnlineSoftmax& step, Arguments& out) const {
    out.count(static_cast<double>(step.factor));
    out.flag(false);
  }
  void write_arguments(const schedule::Winograd& step, Arguments& out) const {
    out.count(static_cast<double>(step.outputs));
  }
  void write_arguments(const schedule::Strassen&, Arguments& out) const { out.count(1); }
  void write_arguments(const schedule::Sink& step, Arguments& out) const {
    out.count(0);  // number of loops that change places
    out.count(extent(step.loop));
  }
  void write_arguments(const schedule::Vectorize& step, Arguments& out) const {
    out.count(extent(step.loop));
    out.flag(reduces(step.loop));
  }
  void write_arguments(const schedule::Unroll&, Arguments&) const {}  // write(unrolls)
  void write_arguments(const schedule::Parallel& step, Arguments& out) const {
    out.count(extent(step.loop));
  }
  void write_arguments(const schedule::Bind& step, Arguments& out) const {
    out.count(extent(step.loop));
    out.plain(1 + static_cast<double>(step.level));
  }
  void write_arguments(const schedule::MatrixProduct& step, Arguments& out) const {
    out.count(static_cast<double>(step.multiple));
  }
  void write_arguments(const schedule::Tensorize& step, Arguments& out) const {
    out.count(extent(step.rows) * extent(step.columns) * extent(step.terms));
    out.flag(true);
  }
  void write_arguments(const schedule::Prefetch& step, Arguments& out) const {
    out.count(static_cast<double>(step.distance));
    out.count(extent(step.loop));
  }

  const space::Candidate& candidate_;
  std::vector<bool> winograd_;
  float* to_;
  int stage_ = -1;  // stage of the step; -1 if it does not exist any more
};

// Returns how many steps from the first on are one token.
size_t run_length(std::span<const schedule::Step> steps) {
  const auto* first = std::get_if<schedule::Unroll>(&steps[0]);
  size_t length = 1;
  while (first && length < steps.size()) {
    const auto* next = std::get_if<schedule::Unroll>(&steps[length]);
    if (next == nullptr || next->stage != first->stage) break;
    ++length;
  }
  return length;
}

}  // namespace

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const std::string_view kind : kKindNames) names.push_back(fmt::format("kind.{}", kind));
    for (const std::string_view tag : tag_names()) names.push_back(fmt::format("tag.{}", tag));
    names.emplace_back("stage");
    for (size_t i = 0; i < kArguments; ++i) names.push_back(fmt::format("argument{}", i));
    return names;
  }();
  return kNames;
}

void write_steps(const space::Candidate& candidate, float* tokens, float* mask) {
  if (mask) mask[0] = 1;
  TokenWriter writer(candidate, tokens);
  std::span<const schedule::Step> rest = candidate.steps;
  for (int64_t token = 0; token < kMaxStepTokens && !rest.empty(); ++token) {
    const size_t length = run_length(rest);
    if (mask) mask[token] = 1;
    if (tokens) {
      if (std::holds_alternative<schedule::Unroll>(rest[0]))
        writer.write(rest.first(length));
      else
        writer.write(rest[0]);
      writer.next();
    }
    rest = rest.subspan(length);
  }
}

}  // namespace hone::cost
