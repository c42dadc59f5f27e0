// schedule/step.h - a schedule is a vector of steps, which are plain values that print, parse,
// hash, compare and replay. A step names stages, loops and axes by their roles, never by position.
//
// The loops of a stage start as its axes. split(oc, [2, 16]) replaces oc by oc.0 oc.1 oc.2
// (outermost first), and fuse([n, oh]) replaces n and oh by n@oh. The text has one step per line:
//   split(relu, oc, [2, 16], pad)      (the tail may be left out: mask)
//   compute_at(conv2d, relu, ow.0)
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/expr.h"

namespace hone::schedule {

// How the last, incomplete tile of a split is handled.
enum class Tail : uint8_t {
  kMask,   // its points are tested, by vector masks or branches
  kPeel,   // the loop is split where the test becomes true, so that full tiles run without it
  kPad,    // producers compute the whole tile (what they read must exist); only stores are tested
  kTest,   // for parallel loops: one test per tile selects code without tests for full tiles
  kWhole,  // as kPad, and tiles keep their lengths even if the loop is shorter
};

// for i in 0..n  -->  for i.0 in 0..ceil(n/4)  for i.1 in 0..4     (lengths = [4])
struct Split {
  std::string stage, loop;
  // Inner extents, outermost first; the outer extent follows from them.
  std::vector<int64_t> lengths;
  Tail tail = Tail::kMask;
  bool operator==(const Split&) const = default;
};
// for i  for j  -->  for i@j                 (adjacent loops of one kind, outermost first)
struct Fuse {
  std::string stage;
  std::vector<std::string> loops;
  bool operator==(const Fuse&) const = default;
};
// The named loops exchange the places that they have now, to be in the given order; other loops
// stay.
struct Reorder {
  std::string stage;
  std::vector<std::string> loops;
  bool operator==(const Reorder&) const = default;
};
// The stage is computed inside a loop of its consumer; only what one iteration needs is computed.
struct ComputeAt {
  std::string stage, at, loop;
  bool operator==(const ComputeAt&) const = default;
};
// The stage's buffer is allocated outside that loop of the consumer; the computation stays where it
// is.
struct StoreAt {
  std::string stage, at, loop;
  bool operator==(const StoreAt&) const = default;
};
// The stage's buffer keeps only `factor` rows of an axis, as a ring buffer; rows that the loop's
// previous iteration computed are not computed again. It needs store_at one loop outside
// compute_at.
struct Fold {
  std::string stage, axis;
  int64_t factor = 0;
  bool operator==(const Fold&) const = default;
};
// A pointwise stage is substituted into its readers.
struct Inline {
  std::string stage;
  bool operator==(const Inline&) const = default;
};
// reader(buffer)  -->  buffer.cache = copy of buffer;  reader(buffer.cache)
struct CacheRead {
  std::string buffer, reader;
  bool operator==(const CacheRead&) const = default;
};
// A sum of products becomes one product of matrices, left[rows, terms] * right[terms, columns], for
// each point of its other axes (matrix_product.h). `terms` are filled up with zeros to a multiple.
struct MatrixProduct {
  std::string stage;
  std::vector<std::string> rows, columns;
  int64_t multiple = 1;
  bool operator==(const MatrixProduct&) const = default;
};
// sum of b[i + k] * w[k]  -->  b.col[i, k] = b[i + k];  sum of b.col[i, k] * w[k]    (im2col.h)
struct Im2col {
  std::string stage, buffer;
  bool operator==(const Im2col&) const = default;
};
// stage = value  -->  stage.acc = value;  stage = stage.acc
struct CacheWrite {
  std::string stage;
  bool operator==(const CacheWrite&) const = default;
};
// The stage's buffer gets this scope: register, stack, thread or global; in a block of a GPU shared
// or fragment, whose leading dimensions are then the loops over threads.
struct SetScope {
  std::string stage;
  ir::Scope scope = ir::Scope::kGlobal;
  bool operator==(const SetScope&) const = default;
};
// The stage's buffer gets this order and blocking of axes: ["oc/32", "ic", "oc/16%2", "oc%16"].
// Every digit of every axis occurs once, and for one axis larger divisors come first. "oc%16+4" has
// four more elements, which stay unused, so that neighbours in shared memory lie in other banks.
struct Layout {
  std::string stage;
  std::vector<std::string> dims;
  bool operator==(const Layout&) const = default;
};
// How the terms of a sum are divided into parts.
enum class Parts : uint8_t {
  kBlocks,  // part p has `factor` consecutive terms, from p * factor on
  // Part p has every factor-th term, from the p-th on, so neighbouring terms are in different
  // parts.
  kStrided,
};
// sum over k  -->  stage.rf[ko, ..] = sum over factor of k;  stage = sum over ko of stage.rf
// strided:         stage.rf[ki, ..] = sum over k / factor;   stage = sum over ki of stage.rf
// Also of a body that is a scan: each part's total, then each part from those before it on
// (scan_parts.h).
struct RFactor {
  std::string stage, axis;
  int64_t factor = 0;
  Parts parts = Parts::kBlocks;
  bool operator==(const RFactor&) const = default;
};
// softmax(scores) times values, a sum over keys  -->  the same in tiles of `factor` keys, of which
// only running sums are kept (online_softmax.h)
enum class KeyTiles : uint8_t { kShortEnd, kWhole };  // the last one has the keys left, or `factor`
struct OnlineSoftmax {
  std::string stage;
  int64_t factor = 0;
  KeyTiles tiles = KeyTiles::kShortEnd;
  bool operator==(const OnlineSoftmax&) const = default;
};
// A convolution is computed by Winograd's F(outputs, taps) in each dimension (winograd.h).
struct Winograd {
  std::string stage;
  int64_t outputs = 0;
  bool operator==(const Winograd&) const = default;
};
// A matrix product is computed by Strassen's algorithm on pairs of `rows`, halves of the sum, and
// pairs of vectors of `lanes` columns (strassen.h).
struct Strassen {
  std::string stage, rows;
  int64_t lanes = 0;
  bool operator==(const Strassen&) const = default;
};
// A stage that runs at compile time keeps its result in fewer bits (bf16), and readers widen it.
// This halves the bytes of weights and rounds each by at most 2^-9 of itself.
struct Narrow {
  std::string stage;
  DType dtype = DType::kBF16;
  bool operator==(const Narrow&) const = default;
};
// The loop and those inside it are moved inside the loops of the stage's body, whose iterations
// then process their points side by side (ir/sink_loops.h). The stage has a body of statements (a
// scan).
struct Sink {
  std::string stage, loop;
  bool operator==(const Sink&) const = default;
};
// The loop may also be one of the stage's body if that is a scan (ir/scan_loop.h), such as `n` of
// `cum_sum`.
struct Vectorize {
  std::string stage, loop;
  bool operator==(const Vectorize&) const = default;
};
struct Unroll {
  std::string stage, loop;
  bool operator==(const Unroll&) const = default;
};
// The loop is the outermost one of a root stage; its iterations are the kernel's tiles.
struct Parallel {
  std::string stage, loop;
  bool operator==(const Parallel&) const = default;
};
// Each iteration of the loop prefetches what `buffer` will be read for `distance` iterations later.
struct Prefetch {
  std::string stage, buffer, loop;
  int64_t distance = 0;
  bool operator==(const Prefetch&) const = default;
};
// Says which parts of a block of a GPU the iterations of a loop are given to (ir::ForKind).
enum class ThreadLevel : uint8_t { kThread, kWarp, kLane };
// The iterations of the loop are threads of a block. The block runs the loops outside of it as a
// whole.
struct Bind {
  std::string stage, loop;
  ThreadLevel level = ThreadLevel::kThread;
  bool operator==(const Bind&) const = default;
};

// How a copy that works ahead gets to shared memory.
enum class Transport : uint8_t {
  kAsync,      // by asynchronous copies, which threads wait for by groups
  kRegisters,  // it is loaded before the iteration before it is computed, and stored behind that
};
// The stage, which a block copies to shared memory in a loop of its reader, works ahead: its buffer
// becomes a ring of `depth` slots, and iteration i + depth - 1 is copied while i is computed.
// Through registers the depth is 2.
struct Pipeline {
  std::string stage;
  int64_t depth = 2;
  Transport transport = Transport::kAsync;
  bool operator==(const Pipeline&) const = default;
};

// How a matrix instruction takes its operands.
enum class Rounding : uint8_t {
  kNone,
  kTf32,  // float32 with 10 bits behind the point
};
// The three innermost loops of a sum of products, over rows and columns of the result and over
// terms, become a matrix statement of a warp (tensorize.h).
struct Tensorize {
  std::string stage, rows, columns, terms;
  Rounding rounding = Rounding::kNone;
  bool operator==(const Tensorize&) const = default;
};

// Loops of the stage's body become its last axes, of the last one vectors of so many iterations
// (lift_loops.h).
struct Lift {
  std::string stage;
  std::vector<std::string> loops;
  int64_t vector = 1;
  bool operator==(const Lift&) const = default;
};
// A body that copies and then updates becomes stage.copy and a stage whose points are the updates
// (split_updates.h).
struct SplitUpdates {
  std::string stage;
  bool operator==(const SplitUpdates&) const = default;
};
// The threads of a block run the stage's body together for each of its points (block_selection.h).
struct BlockBody {
  std::string stage;
  int64_t threads = 0;
  bool operator==(const BlockBody&) const = default;
};

using Step = std::variant<Split, Fuse, Reorder, ComputeAt, StoreAt, Fold, Inline, CacheRead, Im2col,
                          CacheWrite, SetScope, Layout, RFactor, OnlineSoftmax, Winograd, Strassen,
                          Narrow, Sink, Vectorize, Unroll, Parallel, Prefetch, Bind, Pipeline,
                          MatrixProduct, Tensorize, Lift, SplitUpdates, BlockBody>;
using Steps = std::vector<Step>;

[[nodiscard]] std::string to_string(const Step& step);
[[nodiscard]] std::string to_string(const Steps& steps);  // one step a line
// Parses steps. An unknown step, a missing or extra argument or a malformed list is an error that
// names the line.
[[nodiscard]] Result<Steps> parse_steps(std::string_view text);
[[nodiscard]] uint64_t hash(const Steps& steps);
// Returns the algorithm that a schedule uses: "direct", "im2col", "winograd_4" (tiles of 4 results
// in each dimension) or "strassen". With constants in fewer bits it has a suffix: "direct_bf16",
// "winograd_4_bf16"; "direct_tf32" has factors in tf32.
[[nodiscard]] std::string algorithm_of(const Steps& steps);

}  // namespace hone::schedule
