// softmax(Q K + mask) V as one task: a block has a tile of queries, whose scores stay in shared
// memory (Dao et al., FlashAttention).
//
//   parallel batch x heads x tiles of queries:
//     queries: copied to shared memory
//     for tiles of keys: keys, copied;  scores, masked: a register tile of each thread
//     most, weights, total: along rows, partial results of which threads join
//     for tiles of keys: values, copied;  sums: a register tile of each thread
//     the result: divided by the totals
//
// Of many keys the scores would not fit: in a second sketch (schedule/online_softmax.h) all between
// the queries and the result runs over a tile of keys at a time, and running maxima and sums, in
// registers, join the tiles.
#include "hone/space/rules/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::Steps;
using schedule::Tail;

constexpr int64_t kVectorBytes = 16;     // the longest load and store of a thread
constexpr int64_t kTerms = 4;            // of a sum that straight code adds: a vector of a row
constexpr int64_t kMostCopies = 16;      // copies of a thread in straight code
constexpr int64_t kMostProducts = 64;    // results in registers of a thread
constexpr int64_t kSpareRegisters = 40;  // of a thread: addresses, counters, values loaded early
constexpr int64_t kUsualThreads = 128;
constexpr int64_t kLeastRows = 4;    // queries of a block, so that keys are read rarely enough
constexpr int64_t kFewRows = 16;     // of more, blocks are so large that an SM wants several
constexpr int64_t kFewKeys = 512;    // of no more, scores of all are there at once
constexpr int64_t kTileOfKeys = 64;  // of more, so many at a time

// Returns the least power of 2 that covers an extent.
int64_t at_least(int64_t extent) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
}

// A copy of an operand in shared memory.
struct Operand {
  std::string stage;
  std::vector<std::string> axes;  // the contiguous one of the source last
  int64_t bytes = 4;              // of an element
  bool is_whole = true;           // its contiguous axis is a dimension of the source
};

// `keys` are those whose scores are there at a time, and kSums, of keys in tiles, is a tile's.
class GpuAttention : public Group, public Attention {
 public:
  std::string joined;  // the stage that joins tiles of keys; "": all keys at once
  // Axes of the scores: keys, and what they sum; and the keys that the values are summed over.
  std::string key, term, summed;
  int64_t depth = 1, channels = 1;  // extents of `term` and of `lane`
  Operand copied_queries, copied_keys, copied_values;
  int64_t score_bytes = 4;
  bool mask_moves = false;  // what is added to the scores differs between queries
  // The terms of a key's scores are neighbours in memory, in shared memory, too. Then a thread has
  // keys far apart, so that neighbouring threads read neighbouring rows.
  bool keys_are_rows = false;
  int64_t all_keys = 1;
  target::Gpu gpu;
  DecisionId d_rows;                            // queries of a block
  DecisionId d_queries, d_vector, d_columns;    // of scores: registers, and threads along keys
  DecisionId d_parts;                           // threads of a row
  DecisionId d_sum_queries, d_lanes, d_groups;  // of sums: registers: queries, vectors of channels
  DecisionId d_values;                          // keys whose values are copied at a time

  [[nodiscard]] bool legal(const Choice& choice) const override {
    const int64_t rows = choice[d_rows], lanes = choice[d_lanes];
    if (choice[d_queries] > rows || choice[d_sum_queries] > rows) return false;
    const int64_t scores = choice[d_queries] * choice[d_vector];
    const int64_t sums = choice[d_sum_queries] * lanes * choice[d_groups];
    const int64_t most =
        std::min<int64_t>(kMostProducts, gpu.registers_per_thread - kSpareRegisters);
    if (std::max(scores, sums) > most) return false;
    if (choice[d_groups] > 1 &&
        (choice[d_groups] - 1) * channel_threads(choice) * lanes >= channels)
      return false;
    if ((choice[d_columns] - 1) * choice[d_vector] >= keys) return false;
    return threads(choice) <= gpu.threads_per_block && threads(choice) > 1 &&
           rows * choice[d_parts] <= gpu.threads_per_block &&
           shared_bytes(choice) <= gpu.shared_bytes_opt_in;
  }

  // So many queries in a block that every SM has work, if that can be, and threads for register
  // tiles of 4 x 4, or less where few queries have few threads.
  void set_default(MutableChoice& choice) const override {
    const auto rows = choice.options(d_rows);
    int64_t most = rows[0];
    for (const int64_t n : rows) {
      const int64_t blocks = blocks_outside * ceil_div(queries, n);
      if (blocks >= (n > kFewRows ? 2 : 1) * gpu.sms) most = n;
    }
    choice.set(d_rows, most);
    while (!try_default(choice) && choice.index(d_rows) > 0)
      choice.set_index(d_rows, choice.index(d_rows) - 1);
  }

  void canonicalise(MutableChoice& choice) const override {
    if (joined.empty()) choice.shorten(d_values, keys);
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    const int64_t in_block = threads(choice);
    for (const AttentionPart part : {kMost, kTotal}) {
      steps.emplace_back(
          schedule::RFactor{stage[part], summed, choice[d_parts], schedule::Parts::kStrided});
      steps.emplace_back(schedule::CacheWrite{stage[part] + ".rf"});
    }
    const std::string block = append_result(choice, steps);
    const Place all = {stage[kResult], block}, tile = {joined, "t"};
    const Place& around = joined.empty() ? all : tile;
    Place values = {stage[kSums], summed + ".0"};
    append_sums(choice, all, steps);
    if (!joined.empty()) append_part(steps), values = tile;
    append_copy(copied_values, values, {summed, lane}, in_block, choice, steps);
    append_row(kTotal, around, steps);
    append_scores(kWeights, choice, around, steps);
    append_row(kMost, around, steps);
    append_scores(kMasked, choice, around, steps);
    append_products(choice, steps);
    const std::vector<std::string> key_dims =
        keys_are_rows ? std::vector<std::string>{key, term} : std::vector<std::string>{term, key};
    append_copy(copied_keys, {stage[kMasked], key + ".0"}, key_dims, in_block, choice, steps);
    append_copy(copied_queries, all, {query, term}, in_block, choice, steps);
  }

 private:
  struct Place {
    std::string stage, loop;
  };
  static void compute_at(const std::string& what, const Place& place, ir::Scope scope,
                         Steps& steps) {
    steps.emplace_back(schedule::ComputeAt{what, place.stage, place.loop});
    steps.emplace_back(schedule::SetScope{what, scope});
  }
  // The outer axes of a stage. Those of a tile of keys have its number, too.
  [[nodiscard]] std::vector<std::string> outer_of(AttentionPart part) const {
    std::vector<std::string> axes = outer;
    if (!joined.empty() && part != kScores && part != kMasked) axes.insert(axes.begin(), "t");
    return axes;
  }
  [[nodiscard]] int64_t channel_threads(const Choice& choice) const {
    return ceil_div(channels, choice[d_lanes] * choice[d_groups]);
  }
  [[nodiscard]] int64_t keys_at_once(const Choice& choice) const {
    return choice[d_columns] * choice[d_vector];
  }
  [[nodiscard]] int64_t values_at_once(const Choice& choice) const {
    return joined.empty() ? std::min(choice[d_values], keys) : keys;
  }
  [[nodiscard]] int64_t threads(const Choice& choice) const {
    const int64_t rows = choice[d_rows];
    return std::max(ceil_div(rows, choice[d_queries]) * choice[d_columns],
                    ceil_div(rows, choice[d_sum_queries]) * channel_threads(choice));
  }
  // Rows of shared memory are longer by a vector, so that neighbouring ones begin in other banks.
  [[nodiscard]] int64_t padding(int64_t bytes) const { return kVectorBytes / bytes; }
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const {
    const int64_t rows = choice[d_rows], at_once = keys_at_once(choice);
    const auto array = [&](int64_t of_rows, int64_t columns, int64_t bytes) {
      return of_rows * (columns + padding(bytes)) * bytes;
    };
    const int64_t lanes = channel_threads(choice) * choice[d_lanes] * choice[d_groups];
    return array(rows, depth, copied_queries.bytes) + array(depth, at_once, copied_keys.bytes) +
           array(values_at_once(choice), lanes, copied_values.bytes) +
           2 * array(rows, round_up(keys, at_once), score_bytes) +
           2 * rows * (choice[d_parts] + 1) * score_bytes;
  }

  // Sets all but the number of queries, and returns whether that is legal.
  bool try_default(MutableChoice& choice) const {
    const int64_t rows = choice[d_rows];
    const int64_t wanted =
        std::min<int64_t>(rows > 16 ? 2 * kUsualThreads : kUsualThreads, gpu.threads_per_block);
    choice.set(d_queries, std::clamp<int64_t>(rows / 4, 1, 4));
    choice.set_last(d_vector);
    choice.set(d_columns, std::clamp<int64_t>(wanted / ceil_div(rows, choice[d_queries]), 1, 32));
    choice.set_last(d_lanes);
    choice.set(d_groups, 1);
    const int64_t along = std::max<int64_t>(1, wanted / channel_threads(choice));
    choice.set(d_sum_queries, at_least(ceil_div(rows, along)));
    choice.set(d_parts, std::clamp<int64_t>(wanted / rows, 1, 32));
    choice.set(d_values, kTileOfKeys);
    // What takes less memory, from what costs least on.
    for (const DecisionId d : {d_values, d_columns, d_parts, d_vector}) {
      while (!legal(choice) && choice.index(d) > 0) choice.set_index(d, choice.index(d) - 1);
    }
    return legal(choice);
  }

  // Returns the loop over blocks.
  std::string append_result(const Choice& choice, Steps& steps) const {
    const std::string& root = stage[kResult];
    const int64_t queries_each = choice[d_sum_queries];
    steps.emplace_back(schedule::Split{root,
                                       query,
                                       {ceil_div(choice[d_rows], queries_each), queries_each},
                                       mask_moves ? Tail::kMask : Tail::kPad});
    steps.emplace_back(schedule::Split{
        root, lane, {choice[d_groups], channel_threads(choice), choice[d_lanes]}, Tail::kPad});
    std::vector<std::string> grid = outer, loops;
    grid.insert(grid.end(), {query + ".0", lane + ".0"});
    loops = grid;
    loops.insert(loops.end(), {query + ".1", lane + ".2", query + ".2", lane + ".1", lane + ".3"});
    steps.emplace_back(schedule::Reorder{root, std::move(loops)});
    const std::string block = fuse_loops(root, grid, steps);
    steps.emplace_back(schedule::Parallel{root, block});
    for (const char* of : {".1", ".2"})
      steps.emplace_back(schedule::Bind{root, (of[1] == '1' ? query : lane) + of});
    for (const std::string& loop : {query + ".2", lane + ".1"})
      steps.emplace_back(schedule::Unroll{root, loop});
    steps.emplace_back(schedule::Vectorize{root, lane + ".3"});
    return block;
  }

  // The sums over all keys, or over tiles of them, in registers of all threads.
  void append_sums(const Choice& choice, const Place& place, Steps& steps) const {
    const std::string& sums = joined.empty() ? stage[kSums] : joined;
    const int64_t t = channel_threads(choice), v = choice[d_lanes], rows = choice[d_sum_queries];
    compute_at(sums, place, ir::Scope::kFragment, steps);
    steps.emplace_back(schedule::Split{sums, query, {rows}});
    steps.emplace_back(schedule::Split{sums, lane, {t, v}});
    std::vector<std::string> terms = {"t"}, inside;
    if (joined.empty()) {
      append_layout(choice, steps);
      const int64_t straight = std::min(kTerms, choice[d_values]);
      steps.emplace_back(
          schedule::Split{sums, summed, {choice[d_values] / straight, straight}, Tail::kPeel});
      terms = {summed + ".0"}, inside = {summed + ".1", summed + ".2"};
    }
    std::vector<std::string> loops = outer;
    loops.insert(loops.end(), terms.begin(), terms.end());
    loops.insert(loops.end(), {query + ".0", lane + ".1"});
    loops.insert(loops.end(), inside.begin(), inside.end());
    loops.insert(loops.end(), {query + ".1", lane + ".0", lane + ".2"});
    steps.emplace_back(schedule::Reorder{sums, std::move(loops)});
    for (const std::string& loop : {query + ".0", lane + ".1"})
      steps.emplace_back(schedule::Bind{sums, loop});
    if (!inside.empty()) steps.emplace_back(schedule::Unroll{sums, inside.back()});
    for (const std::string& loop : {query + ".1", lane + ".0", lane + ".2"})
      steps.emplace_back(schedule::Unroll{sums, loop});
  }

  void append_layout(const Choice& choice, Steps& steps) const {
    const int64_t t = channel_threads(choice), v = choice[d_lanes], rows = choice[d_sum_queries];
    std::vector<std::string> dims = {quotient(query, rows)};
    dims.push_back(choice[d_groups] > 1 ? remainder(quotient(lane, v), t) : quotient(lane, v));
    dims.insert(dims.end(), outer.begin(), outer.end());
    dims.push_back(remainder(query, rows));
    if (choice[d_groups] > 1) dims.push_back(quotient(lane, t * v));
    dims.push_back(remainder(lane, v));
    steps.emplace_back(schedule::Layout{stage[kSums], std::move(dims)});
  }

  // The sums over one tile of keys, by the threads that join them.
  void append_part(Steps& steps) const {
    compute_at(stage[kSums], {joined, lane + ".1"}, ir::Scope::kRegister, steps);
    append_register_tile(stage[kSums], outer_of(kSums), summed, {query, lane}, steps);
  }

  static void append_register_tile(const std::string& sums, std::vector<std::string> loops,
                                   const std::string& terms, const std::vector<std::string>& tile,
                                   Steps& steps) {
    steps.emplace_back(schedule::Split{sums, terms, {kTerms}, Tail::kPeel});
    loops.insert(loops.end(), {terms + ".0", terms + ".1"});
    loops.insert(loops.end(), tile.begin(), tile.end());
    steps.emplace_back(schedule::Reorder{sums, std::move(loops)});
    steps.emplace_back(schedule::Unroll{sums, terms + ".1"});
    for (const std::string& loop : tile) steps.emplace_back(schedule::Unroll{sums, loop});
  }

  // Scores of a block in shared memory, those of a tile of keys at a time.
  void append_scores(AttentionPart part, const Choice& choice, const Place& place,
                     Steps& steps) const {
    const std::string& scores = stage[part];
    compute_at(scores, place, ir::Scope::kShared, steps);
    steps.emplace_back(schedule::Split{scores, query, {choice[d_queries]}});
    std::vector<int64_t> lengths = {choice[d_columns], choice[d_vector]};
    if (keys_are_rows) std::swap(lengths[0], lengths[1]);
    const std::string thread = key + (keys_are_rows ? ".2" : ".1");
    const std::string each = key + (keys_are_rows ? ".1" : ".2");
    steps.emplace_back(schedule::Split{scores, key, std::move(lengths),
                                       part == kMasked ? Tail::kPad : Tail::kMask});
    std::vector<std::string> dims = outer_of(part), loops = dims;
    dims.insert(dims.end(), {query, key + fmt::format("+{}", padding(score_bytes))});
    steps.emplace_back(schedule::Layout{scores, std::move(dims)});
    loops.insert(loops.end(), {key + ".0", query + ".0", thread, query + ".1", each});
    steps.emplace_back(schedule::Reorder{scores, std::move(loops)});
    for (const std::string& loop : {query + ".0", thread})
      steps.emplace_back(schedule::Bind{scores, loop});
    steps.emplace_back(schedule::Unroll{scores, query + ".1"});
    if (keys_are_rows)
      steps.emplace_back(schedule::Unroll{scores, each});
    else
      steps.emplace_back(schedule::Vectorize{scores, each});
  }

  // The register tile of scores.
  void append_products(const Choice& choice, Steps& steps) const {
    const std::string& scores = stage[kScores];
    const int64_t rows = choice[d_queries], t = choice[d_columns], v = choice[d_vector];
    compute_at(scores, {stage[kMasked], key + ".0"}, ir::Scope::kFragment, steps);
    steps.emplace_back(schedule::Split{scores, query, {rows}});
    steps.emplace_back(schedule::Split{scores, key, {keys_are_rows ? t : v}});
    const std::string thread = key + (keys_are_rows ? ".1" : ".0");
    const std::string each = key + (keys_are_rows ? ".0" : ".1");
    std::vector<std::string> dims = {quotient(query, rows)}, loops = outer;
    dims.push_back(keys_are_rows ? remainder(key, t) : quotient(key, v));
    dims.insert(dims.end(), outer.begin(), outer.end());
    dims.push_back(remainder(query, rows));
    dims.push_back(keys_are_rows ? quotient(key, t) : remainder(key, v));
    steps.emplace_back(schedule::Layout{scores, std::move(dims)});
    loops.insert(loops.end(), {query + ".0", thread});
    append_register_tile(scores, std::move(loops), term, {query + ".1", each}, steps);
    for (const std::string& loop : {query + ".0", thread})
      steps.emplace_back(schedule::Bind{scores, loop});
  }

  // A maximum or sum of each row: partial results of which neighbouring threads take neighbouring
  // terms, and a thread that joins them.
  void append_row(AttentionPart part, const Place& at, Steps& steps) const {
    const std::string parts = stage[part] + ".rf", each = summed + "i";
    const auto place = [&](const std::string& what, const std::vector<std::string>& bound,
                           const std::string& inside) {
      compute_at(what, at, ir::Scope::kShared, steps);
      std::vector<std::string> loops = outer_of(part);
      loops.insert(loops.end(), bound.begin(), bound.end());
      if (!inside.empty()) loops.push_back(inside);
      if (loops.size() > 1) steps.emplace_back(schedule::Reorder{what, std::move(loops)});
      for (const std::string& loop : bound) steps.emplace_back(schedule::Bind{what, loop});
    };
    place(stage[part], {query}, each);
    place(parts, {query, each}, "");
    compute_at(parts + ".acc", {parts, each}, ir::Scope::kRegister, steps);
  }

  // Points of an axis that a copy has at a time.
  [[nodiscard]] int64_t points_of(const std::string& axis, const Choice& choice) const {
    if (axis == query) return choice[d_rows];
    if (axis == key) return std::min(keys_at_once(choice), keys);
    if (axis == term) return depth;
    if (axis == summed) return values_at_once(choice);
    return axis == lane ? channels : 1;
  }

  // `dims`: the order of the last two axes in shared memory.
  void append_copy(const Operand& operand, const Place& place, const std::vector<std::string>& dims,
                   int64_t in_block, const Choice& choice, Steps& steps) const {
    compute_at(operand.stage, place, ir::Scope::kShared, steps);
    std::vector<std::string> layout;
    for (const std::string& axis : operand.axes) {
      if (std::find(dims.begin(), dims.end(), axis) == dims.end()) layout.push_back(axis);
    }
    layout.insert(layout.end(), dims.begin(), dims.end());
    layout.back() += fmt::format("+{}", padding(operand.bytes));
    steps.emplace_back(schedule::Layout{operand.stage, std::move(layout)});
    const std::string& last = operand.axes.back();
    std::vector<std::string> loops = operand.axes;
    int64_t vector = last == dims.back() && operand.is_whole ? kVectorBytes / operand.bytes : 1;
    const int64_t whole = last == key || last == summed ? all_keys : points_of(last, choice);
    while (vector > 1 && (points_of(last, choice) % vector != 0 || whole % vector != 0))
      vector /= 2;
    if (vector > 1) {
      steps.emplace_back(schedule::Split{operand.stage, last, {vector}});
      loops.back() += ".0";
    }
    std::vector<std::string> order = loops;
    if (vector > 1) order.push_back(last + ".1");
    if (order.size() > 1) steps.emplace_back(schedule::Reorder{operand.stage, std::move(order)});
    int64_t elements = 1;
    for (const std::string& axis : operand.axes) elements *= points_of(axis, choice);
    const std::string fused = fuse_loops(operand.stage, loops, steps);
    steps.emplace_back(schedule::Split{operand.stage, fused, {in_block}});
    steps.emplace_back(schedule::Reorder{operand.stage, {fused + ".1", fused + ".0"}});
    steps.emplace_back(schedule::Bind{operand.stage, fused + ".1"});
    if (ceil_div(elements, in_block * vector) <= kMostCopies)
      steps.emplace_back(schedule::Unroll{operand.stage, fused + ".0"});
    if (vector > 1) steps.emplace_back(schedule::Vectorize{operand.stage, last + ".1"});
  }
};

// Copies what a product reads of one buffer, and returns the copy; nullopt if that is illegal.
std::optional<Operand> copy_operand(SketchBuilder& builder, const std::string& product,
                                    const ir::BufferPtr& buffer) {
  if (!builder.add_step(schedule::Im2col{product, buffer->name}).ok()) return std::nullopt;
  const int place = builder.state.find_stage(product) - 1;
  const StageInfo& info = *builder.state.stages[static_cast<size_t>(place)].info;
  Operand copy;
  copy.stage = info.stage.name;
  copy.bytes = dtype_bytes(info.stage.outputs[0].buffer->dtype);
  std::vector<std::pair<int64_t, std::string>> strides;
  for (size_t a = 0; a < info.stage.axes.size(); ++a) {
    int64_t stride = 0;
    for (const compute::Access& read : info.reads) stride = std::max(stride, stride_of(read, a));
    strides.emplace_back(stride, info.stage.axes[a].var->name);
  }
  std::stable_sort(strides.begin(), strides.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& [stride, name] : strides) copy.axes.push_back(name);
  copy.is_whole = strides.back().first == 1;
  return copy;
}

// Returns the buffer that alone moves (or stays) with an axis, of what a product reads.
ir::BufferPtr operand_that(const StageInfo& product, const std::string& axis, bool does_move,
                           const ir::BufferPtr& other) {
  ir::BufferPtr found;
  for (const compute::Access& read : product.reads) {
    if (read.buffer == product.stage.outputs[0].buffer || read.buffer == other) continue;
    if (moves(read, axis_named(product, axis)) != does_move) continue;
    if (found && found != read.buffer) return nullptr;
    found = read.buffer;
  }
  return found;
}

void add_decisions(SketchBuilder& builder, GpuAttention& group) {
  const auto add = [&](AttentionPart part, std::string_view role, DecisionKind kind,
                       std::vector<int64_t> options, int64_t extent = 0) {
    return builder.add_decision(group.stage[part], role, kind, std::move(options), extent);
  };
  const int64_t rows = std::min<int64_t>(64, at_least(group.queries));
  const int64_t vector = kVectorBytes / group.score_bytes;
  group.d_rows = add(kResult, "rows", DecisionKind::kTile, powers_of_2(1, rows), group.queries);
  group.d_queries = add(kScores, "rows", DecisionKind::kTile,
                        powers_of_2(1, std::min<int64_t>(8, rows)), group.queries);
  group.d_vector = add(kScores, "vector", DecisionKind::kVector,
                       powers_of_2(1, std::min(vector, at_least(group.keys))));
  group.d_columns = add(kScores, "threads", DecisionKind::kParallel,
                        powers_of_2(1, std::min<int64_t>(128, at_least(group.keys))));
  group.d_parts = add(kMost, "threads", DecisionKind::kParallel,
                      powers_of_2(1, std::min<int64_t>(32, at_least(group.keys))));
  group.d_sum_queries = add(kSums, "rows", DecisionKind::kTile,
                            powers_of_2(1, std::min<int64_t>(16, rows)), group.queries);
  std::vector<int64_t> lanes = {1};
  while (lanes.back() < vector && group.channels % (2 * lanes.back()) == 0)
    lanes.push_back(2 * lanes.back());
  group.d_lanes = add(kSums, "vector", DecisionKind::kVector, lanes);
  if (!group.joined.empty()) return;
  group.d_groups = add(kSums, "vectors", DecisionKind::kUnroll,
                       powers_of_2(1, std::min<int64_t>(4, group.channels)));
  group.d_values = add(kSums, "keys", DecisionKind::kTile,
                       powers_of_2(std::min<int64_t>(16, at_least(group.keys)),
                                   std::min<int64_t>(256, at_least(group.keys))),
                       group.keys);
}

bool tile_keys(SketchBuilder& builder, GpuAttention& group) {
  group.joined = group.stage[kSums];
  group.keys = kTileOfKeys;
  if (!builder.add_step(schedule::OnlineSoftmax{group.joined, group.keys}).ok()) return false;
  const int joined = builder.state.find_stage(group.joined);  // behind a tile's sums
  group.stage[kSums] = builder.state.stages[static_cast<size_t>(joined - 1)].name();
  return true;
}

Fit add_attention(SketchBuilder& builder, bool in_tiles) {
  const std::optional<Attention> found = find_attention(builder);
  if (!found || (in_tiles && found->keys <= kTileOfKeys)) return Fit::kNone;
  auto group = std::make_shared<GpuAttention>();
  static_cast<Attention&>(*group) = *found;
  group->gpu = builder.target.gpu();
  const schedule::StageInfoPtr scores = builder.info(group->stage[kScores]);
  const schedule::StageInfoPtr masked = builder.info(group->stage[kMasked]);
  const schedule::StageInfoPtr sums = builder.info(group->stage[kSums]);
  if (scores->stage.reduce.size() != 1 || sums->stage.reduce.size() != 1) return Fit::kNone;
  group->term = scores->stage.reduce[0].var->name;
  group->depth = scores->stage.reduce[0].extent;
  group->summed = sums->stage.reduce[0].var->name;
  group->channels = sums->axes[static_cast<size_t>(axis_named(*sums, group->lane))].extent;
  group->score_bytes = dtype_bytes(masked->stage.outputs[0].buffer->dtype);
  for (const compute::Axis& axis : masked->stage.axes) {
    const std::string& name = axis.var->name;
    const bool is_outer = std::count(group->outer.begin(), group->outer.end(), name) > 0;
    if (!is_outer && name != group->query) group->key = name;
  }
  if (group->key.empty() || axis_named(*scores, group->key) < 0 ||
      axis_named(*scores, group->query) < 0 || masked->stage.axes.size() != group->outer.size() + 2)
    return Fit::kNone;
  for (const compute::Access& read : masked->reads)
    group->mask_moves |= read.buffer != scores->stage.outputs[0].buffer &&
                         moves(read, axis_named(*masked, group->query));
  const ir::BufferPtr weights = builder.info(group->stage[kWeights])->stage.outputs[0].buffer;
  const ir::BufferPtr of_queries = operand_that(*scores, group->key, false, nullptr);
  const ir::BufferPtr of_keys = operand_that(*scores, group->query, false, nullptr);
  const ir::BufferPtr of_values = operand_that(*sums, group->query, false, weights);
  if (!of_queries || !of_keys || !of_values || of_queries == of_keys) return Fit::kNone;
  const auto queries = copy_operand(builder, group->stage[kScores], of_queries);
  const auto keys = copy_operand(builder, group->stage[kScores], of_keys);
  const auto values = copy_operand(builder, group->stage[kSums], of_values);
  if (!queries || !keys || !values) return Fit::kNone;
  group->copied_queries = *queries, group->copied_keys = *keys, group->copied_values = *values;
  group->keys_are_rows = keys->axes.back() == group->term;
  group->all_keys = group->keys;
  if (in_tiles && !tile_keys(builder, *group)) return Fit::kNone;
  add_decisions(builder, *group);
  std::vector<int> indices(builder.decisions.size(), 0);
  MutableChoice choice(builder.decisions, indices);
  group->set_default(choice);
  if (!group->legal(choice)) return Fit::kNone;
  const bool has_rows = choice[group->d_rows] >= std::min(kLeastRows, group->queries);
  const bool is_good = has_rows && (group->all_keys > kFewKeys) == in_tiles;
  builder.groups.push_back(std::move(group));
  return is_good ? Fit::kBest : Fit::kPossible;
}

}  // namespace

Fit add_gpu_attention(SketchBuilder& builder, const Task&) { return add_attention(builder, false); }
Fit add_gpu_attention_tiles(SketchBuilder& builder, const Task&) {
  return add_attention(builder, true);
}

}  // namespace hone::space
