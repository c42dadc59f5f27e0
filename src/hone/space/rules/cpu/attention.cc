// softmax(Q K + mask) V as one task (graph/ops/fused_attention.cc has its stages). A block of
// queries stays in the cache while all stages run over it, so scores never reach memory:
//
//   parallel batch x heads x blocks of queries:
//     keys, values: copied into panels, if that is wanted (panels.h)
//     few of the block's queries at a time, or all:
//       scores, masked: their scores, around a register tile
//       most, weights, total: along their rows, vectorized
//       sums: weights times values, around a register tile
//       the result: divided by the totals
//
// Of many keys the scores would not fit: in a second sketch (schedule/online_softmax.h) all this
// runs over a tile of keys at a time, and running maxima and sums join the tiles.
#include "hone/space/rules/attention.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/panels.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::Steps;

constexpr int64_t kPackedQueries = 32;  // of a tile: an estimate of when copying starts to pay
constexpr int64_t kLeastBlock = 4;      // queries: a register tile wants some
// Multiply-adds of register tiles, copies for rests counted: more are too long to be compiled.
constexpr int64_t kMostCode = 480;
constexpr int64_t kRestCopies = 3;  // without a rest, with one, and its own rest

// Scores and their weights.
int64_t score_bytes(int64_t queries, int64_t keys) {
  return 2 * static_cast<int64_t>(sizeof(float)) * queries * keys;
}

// `keys` are those whose scores are there at a time, and kSums, of keys in tiles, is a tile's. If
// keys end early, blocks are short, and tails would be much of them.
class AttentionGroup : public Group, public Attention {
 public:
  std::string joined;     // the stage that joins tiles of keys; "": all keys at once
  bool has_rest = false;  // the last tile of keys is shorter
  int64_t l2_bytes = 1 << 20;
  int cores = 1;
  LoopNest rows[kParts];  // loops of a stage along rows
  std::shared_ptr<Contraction> scores, sums;
  std::optional<Panels> key_panels, value_panels;
  DecisionId d_block, d_blocks;  // queries at a time, how often in a tile of the kernel
  DecisionId d_keys, d_values;   // 1: in panels

  [[nodiscard]] bool legal(const Choice& choice) const override {
    if (choice[d_blocks] > 1 && choice[d_blocks] * choice[d_block] >= 2 * queries) return false;
    for (const Contraction* product : {scores.get(), sums.get()}) {
      if (!product->legal(choice)) return false;
      if (product->roles.column < 0) continue;
      const int64_t block = choice[d_block], columns = product->tile_of(choice).columns;
      if (columns > block || (tiles_blocks_whole() && block % columns != 0)) return false;
    }
    if (code(choice) > kMostCode) return false;
    if (!has_rest) return true;
    // Vectors of rows of keys as they lie are in two cache lines each.
    const bool lies = choice[d_keys] == 0 && key_panels.has_value();
    if (lies && choice[d_blocks] * choice[d_block] >= kPackedQueries) return false;
    return keys % scores->tile_of(choice).width() == 0;
  }

  void set_default(MutableChoice& choice) const override {
    const int64_t together = default_queries(choice), block = default_block(choice, together);
    const int64_t blocks = default_blocks(choice, together, block);
    choice.set(d_block, block);
    choice.set(d_blocks, blocks);
    const bool packs = (!ends_early || has_rest) && blocks * block >= kPackedQueries;
    choice.set(d_keys, packs ? 1 : 0);
    choice.set(d_values, packs ? 1 : 0);
    for (const Contraction* product : {scores.get(), sums.get()}) {
      product->set_default(choice);
      product->set_tile(choice, block, channels_of(*product));
      const TileDecisions& of = product->decisions;
      if (has_rest && product == scores.get())
        shrink(of[TileDecisions::kVectors], keys / product->tile_of(choice).lanes, choice);
      if (tiles_blocks_whole()) shrink(of[TileDecisions::kColumn], block, choice);
    }
    while (shorten_code(block, choice)) {
    }
  }

  void canonicalise(MutableChoice& choice) const override {
    const int64_t block = choice[d_block];
    if (leaves_queries(choice)) return;  // a tail of queries has loops of its own
    for (const Contraction* product : {scores.get(), sums.get()})
      product->canonicalise(choice, {channels_of(*product), block, 1}, true);
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    const bool key_copy = choice[d_keys] == 1, value_copy = choice[d_values] == 1;
    if (key_copy) key_panels->append_copy(steps);
    if (value_copy) value_panels->append_copy(steps);
    const std::string& root = stage[kResult];
    const int64_t block = choice[d_block], blocks = choice[d_blocks];
    const bool split_root = joined.empty() && blocks > 1;
    const bool leaves = leaves_queries(choice);
    std::vector<int64_t> lengths = {blocks * block};
    if (split_root) lengths = {blocks, block};
    steps.push_back(schedule::Split{root, query, lengths,
                                    leaves ? schedule::Tail::kTest : schedule::Tail::kMask});
    LoopNest loops{.outer = outer, .parallel = outer.size() + 1, .vector = lane};
    loops.outer.insert(loops.outer.end(), {query + ".0", query + ".1"});
    if (split_root) loops.outer.push_back(query + ".2");
    const std::string tile = append_nest(root, loops, steps);
    // Where panels lie, and the loop that all other stages are inside of.
    std::string around = root, panel_loop = tile, loop = split_root ? query + ".1" : tile;
    if (!joined.empty()) {
      steps.push_back(schedule::ComputeAt{joined, root, tile});
      around = joined, panel_loop = loop = "t";
      loops = {.outer = outer, .vector = lane};
      loops.outer.emplace_back("t");
      if (blocks > 1) {
        steps.push_back(schedule::Split{
            joined, query, {block}, leaves ? schedule::Tail::kPeel : schedule::Tail::kMask});
        loop = query + ".0";
        loops.outer.insert(loops.outer.end(), {loop, query + ".1"});
      } else {
        loops.outer.push_back(query);
      }
      append_nest(joined, loops, steps);
    }
    for (size_t part = kResult; part-- > 0;) {
      if (part == kScores) continue;  // inside of kMasked
      steps.push_back(schedule::ComputeAt{stage[part], around, loop});
      if (part == kSums) {
        sums->append_steps(choice, steps);
      } else if (part == kMasked) {
        scores->append_steps(choice, steps);
      } else {
        append_nest(stage[part], rows[part], steps);
      }
    }
    const auto width = [&](const Contraction& product) { return product.tile_of(choice).width(); };
    if (value_copy) value_panels->append_loops(around, panel_loop, width(*sums), steps);
    if (key_copy) key_panels->append_loops(around, panel_loop, width(*scores), steps);
  }

 private:
  // Blocks of queries that are short, or have several copies of their code, are whole register
  // tiles.
  [[nodiscard]] bool tiles_blocks_whole() const { return ends_early || has_rest; }
  // Whether the last tile of queries is shorter, and the others run without tests of it.
  [[nodiscard]] bool leaves_queries(const Choice& choice) const {
    return queries % (choice[d_blocks] * choice[d_block]) != 0;
  }
  // Multiply-adds of the code of both register tiles, of which rests have copies of their own.
  [[nodiscard]] int64_t code(const Choice& choice) const {
    const int64_t copies =
        (has_rest ? kRestCopies : 1) * (leaves_queries(choice) ? kRestCopies : 1);
    return copies * (body_of(*scores, choice) + body_of(*sums, choice));
  }
  // The last tile along either side may be smaller, with code of its own.
  [[nodiscard]] int64_t body_of(const Contraction& product, const Choice& choice) const {
    const RegisterTile tile = product.tile_of(choice);
    const int64_t rows = choice[d_block] % tile.columns == 0 ? 1 : 2;
    return rows * (channels_of(product) % tile.width() == 0 ? 1 : 2) * product.body(choice);
  }
  // One step towards code that is short enough, of the product that has more of it: fewer terms
  // at a time, or else a smaller tile. False: nothing is left to do.
  bool shorten_code(int64_t block, MutableChoice& choice) const {
    if (code(choice) <= kMostCode) return false;
    const Contraction *less = scores.get(), *more = sums.get();
    if (body_of(*less, choice) > body_of(*more, choice)) std::swap(less, more);
    for (const Contraction* product : {more, less}) {
      for (const auto role : {TileDecisions::kUnroll, TileDecisions::kColumn}) {
        const DecisionId decision = product->decisions[role];
        const int index = choice.index(decision);
        if (index == 0) continue;
        choice.set_index(decision, index - 1);
        if (role == TileDecisions::kColumn) shrink(decision, block, choice);
        return true;
      }
    }
    return false;
  }
  // Takes the next option that divides a number, as the first one does: 1.
  static void shrink(DecisionId decision, int64_t number, MutableChoice& choice) {
    while (number % choice[decision] != 0) choice.set_index(decision, choice.index(decision) - 1);
  }
  // Along the lanes, of what is computed at a time.
  [[nodiscard]] int64_t channels_of(const Contraction& product) const {
    if (&product == scores.get()) return keys;
    return product.whole().channels;
  }
  [[nodiscard]] int64_t score_bytes(int64_t of_queries) const {
    return space::score_bytes(of_queries, keys);
  }

  // Of a tile of the kernel: as many as leave each core several tiles; where keys end early so few
  // that little is computed in vain, and that their scores stay in a cache.
  [[nodiscard]] int64_t default_queries(const Choice& choice) const {
    int64_t most = choice.options(d_block)[0];
    for (const int64_t n : choice.options(d_block)) {
      if (blocks_outside * ceil_div(queries, n) < 2 * cores) continue;
      if (ends_early && (score_bytes(n) > l2_bytes / 2 || n > std::max<int64_t>(16, queries / 8)))
        continue;
      most = n;
    }
    return most;
  }

  // Of these at a time: the longest part whose scores and weights leave most of the second-level
  // cache to keys and values. Without one all at once, as a rest means tests everywhere, if they
  // fit that cache at all.
  [[nodiscard]] int64_t default_block(const Choice& choice, int64_t of_queries) const {
    if (ends_early) return of_queries;
    int64_t longest = 0, part = 0;
    for (const int64_t n : choice.options(d_block)) {
      if (n > of_queries || (n > kLeastBlock && score_bytes(n) > l2_bytes / 8)) continue;
      longest = n;
      if (of_queries % n == 0 && n >= kLeastBlock) part = n;
    }
    if (part > 0) return part;
    return score_bytes(of_queries) <= l2_bytes / 2 ? of_queries : longest;
  }

  // So many blocks make about those queries, and none has a rest if that can be.
  [[nodiscard]] int64_t default_blocks(const Choice& choice, int64_t of_queries,
                                       int64_t block) const {
    int64_t best = 1;
    for (const int64_t n : choice.options(d_blocks)) {
      const bool whole = queries % block != 0 || queries % (n * block) == 0;
      if (n * block <= of_queries && whole && !ends_early) best = n;
    }
    return best;
  }
};

// `most_usual`: of a block that leaves a rest.
std::vector<int64_t> block_options(int64_t queries, int64_t most_usual) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= std::min<int64_t>(queries, 256); ++n) {
    const bool usual = n >= kLeastBlock && n <= most_usual && (n & (n - 1)) == 0;
    if (queries % n == 0 || usual) options.push_back(n);
  }
  return options;
}

std::vector<int64_t> blocks_options(int64_t queries) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= 32; ++n) {
    if (queries % n == 0 || (n & (n - 1)) == 0) options.push_back(n);
  }
  return options;
}

// Lengths of tiles of keys, whole ones first; none where there are few keys. More keys in a tile
// are joined less often, but scores and weights of a block of queries must stay in the second-level
// cache. Where no long tile divides the keys, the last one of a usual length is shorter.
std::vector<int64_t> key_tiles(int64_t keys) {
  constexpr int64_t kFew = 512, kLeast = 64, kLong = 256, kMost = 512;
  constexpr int64_t kThirds = 384;  // which whole register tiles of 3 vectors fill, too
  std::vector<int64_t> tiles;
  if (keys < kFew) return tiles;
  for (int64_t n = std::min(kMost, keys / 2); n >= kLeast && tiles.empty(); --n) {
    if (keys % n == 0) tiles.push_back(n);
  }
  if (!tiles.empty() && tiles[0] >= kLong) return tiles;
  for (const int64_t n : {kMost, kThirds}) {
    if (n < keys) tiles.push_back(n);
  }
  return tiles;
}

// Whether scores and weights of all keys stay in half of that cache for a good block of queries.
bool fits_cache(int64_t keys, int64_t l2_bytes) {
  constexpr int64_t kQueries = 32;
  return score_bytes(kQueries, keys) <= l2_bytes / 2;
}

void add_panels(SketchBuilder& builder, AttentionGroup& group) {
  const auto find = [&](const Contraction& product, std::string_view role,
                        std::optional<Panels>& panels) {
    const auto lanes = static_cast<size_t>(product.roles.vector);
    if (product.packed.empty())  // else at compile time
      panels = Panels::find(builder.state, product.reduction, product.reduction_names[lanes],
                            group.query);
    if (panels && group.key_panels && &panels != &group.key_panels &&
        panels->buffer() == group.key_panels->buffer())
      panels.reset();  // one buffer has one copy
    return builder.add_decision(group.stage[kResult], role, DecisionKind::kPacking,
                                panels ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  };
  group.d_keys = find(*group.scores, "keys", group.key_panels);
  group.d_values = find(*group.sums, "values", group.value_panels);
}

// Whether the keys can be so tiled: all at once if their scores fit a cache, or in tiles.
bool tile_keys(SketchBuilder& builder, size_t tiling, AttentionGroup& group,
               ContractionOptions& options) {
  const std::vector<int64_t> tiles = key_tiles(group.keys);
  if (tiling == 0) return tiles.empty() || fits_cache(group.keys, group.l2_bytes);
  if (tiling > tiles.size()) return false;
  const int64_t tile = tiles[tiling - 1];
  options.ends_early = group.has_rest = group.keys % tile != 0;
  options.outer.push_back("t");
  group.keys = tile;
  group.joined = group.stage[kSums];
  if (!builder.add_step(schedule::OnlineSoftmax{group.joined, tile}).ok()) return false;
  const int joined = builder.state.find_stage(group.joined);  // behind a tile's sums
  group.stage[kSums] = builder.state.stages[static_cast<size_t>(joined - 1)].name();
  return true;
}

// The loops of a stage along rows, with the last axis that the result has not as the vectorized
// one; none if the result has all.
LoopNest loops_of_rows(const StageInfo& info, const StageInfo& result) {
  std::vector<std::string> names = names_of(info.axes);
  const auto along = std::find_if(names.rbegin(), names.rend(), [&](const std::string& name) {
    return axis_named(result, name) < 0;
  });
  if (along == names.rend()) return {};
  const std::string vector = *along;
  names.erase(along.base() - 1);
  return {.outer = std::move(names), .vector = vector};
}

}  // namespace

Fit add_attention(SketchBuilder& builder, size_t tiling) {
  const std::optional<Attention> found = find_attention(builder);
  if (!found) return Fit::kNone;
  auto group = std::make_shared<AttentionGroup>();
  static_cast<Attention&>(*group) = *found;
  const auto info = [&](AttentionPart part) -> const StageInfo& {
    return *builder.info(group->stage[part]);
  };
  group->cores = builder.cpu().cores;
  if (builder.cpu().caches.size() > 1) group->l2_bytes = builder.cpu().caches[1].bytes;
  ContractionOptions options{.nested = true};
  if (!tile_keys(builder, tiling, *group, options)) return Fit::kNone;
  for (const AttentionPart part : {kMost, kWeights, kTotal}) {
    group->rows[part] = loops_of_rows(info(part), info(kResult));
    if (group->rows[part].vector.empty()) return Fit::kNone;
  }
  const int64_t most_usual = group->has_rest ? std::max<int64_t>(64, group->queries / 4) : 64;
  group->d_block = builder.add_decision(group->stage[kResult], "block", DecisionKind::kTile,
                                        block_options(group->queries, most_usual), group->queries);
  group->d_blocks = builder.add_decision(group->stage[kResult], "blocks", DecisionKind::kTile,
                                         blocks_options(group->queries));
  if (!builder.add_step(schedule::CacheWrite{group->stage[kSums]}).ok()) return Fit::kNone;
  options.outer.insert(options.outer.end(), group->outer.begin(), group->outer.end());
  group->scores = make_contraction(builder, group->stage[kMasked], group->stage[kScores], options);
  if (!group->scores) return Fit::kNone;
  group->scores->rest_peeled = group->has_rest;
  group->sums =
      make_contraction(builder, group->stage[kSums], group->stage[kSums] + ".acc", options);
  if (!group->sums) return Fit::kNone;
  add_panels(builder, *group);
  builder.groups.push_back(std::move(group));
  return Fit::kWhole;
}

}  // namespace hone::space
