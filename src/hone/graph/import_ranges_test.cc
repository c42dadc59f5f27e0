#include "hone/graph/import_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace hone::graph {
namespace {

// A model with a batch and a sequence that the rule decides, and what was asked of it.
struct Imports {
  // Returns whether the model is valid at these sizes.
  std::function<bool(int64_t batch, int64_t sequence)> is_valid;
  bool needs_batched_states = false;  // it is valid at none without
  int whole = 0;                      // imports of ranges that are valid at the smallest sizes
  int largest = 0;                    // inferences at the largest sizes alone
  std::string taken;

  Result<Graph> read(const ImportOptions& options, ImportPart part, RangeFailure& failure) {
    const auto range = [&](const char* name, int64_t most) {
      const auto at = options.ranges.find(name);
      return at == options.ranges.end() ? DimRange{1, most, {}} : at->second[0];
    };
    const DimRange batch = range("batch", options.most_batch);
    const DimRange sequence = range("seq", options.most_sequence);
    const bool is_valid_at_any = options.batched_states || !needs_batched_states;
    const bool is_largest_valid = is_valid_at_any && is_valid(batch.max, sequence.max);
    const bool is_smallest_valid = is_valid_at_any && is_valid(batch.min, sequence.min);
    const bool ends_early = part == ImportPart::kAllIfSmallest && !is_smallest_valid;
    failure = {.at_sizes = true,
               .is_valid_at_largest = is_largest_valid && !ends_early,
               .batches = {"batch"},
               .sequences = {"seq"},
               .may_batch_states = needs_batched_states};
    if (part == ImportPart::kLargest) ++largest;
    if (part == ImportPart::kAll || (part == ImportPart::kAllIfSmallest && is_smallest_valid))
      ++whole;
    const bool all = is_largest_valid && (part == ImportPart::kLargest ||
                                          (is_smallest_valid && is_valid(batch.max, sequence.min) &&
                                           is_valid(batch.min, sequence.max)));
    if (!all) return invalid("not valid");
    Graph graph;
    graph.name = fmt::format("{}..{} x {}..{}", batch.min, batch.max, sequence.min, sequence.max);
    return graph;
  }

  // Returns the ranges that were found.
  std::string run() {
    const ImportOptions options{.open_ranges = true, .taken = &taken};
    const ReadModel read = [this](const ImportOptions& tried, ImportPart part,
                                  RangeFailure& failure) {
      return this->read(tried, part, failure);
    };
    const Result<Graph> graph = import_ranges(options, "m.onnx", read);
    return graph.ok() ? graph->name : graph.status().message();
  }
};

TEST(import_ranges, a_model_that_is_valid_is_imported_once) {
  Imports imports{.is_valid = [](int64_t, int64_t) { return true; }, .taken = {}};
  EXPECT_EQ(imports.run(), "1..8 x 1..512");
  EXPECT_EQ(imports.whole, 1);
  EXPECT_EQ(imports.largest, 0);
}

// Once for the rule's ranges and once for those that were found: in between it is enough to infer
// shapes at single sizes.
TEST(import_ranges, least_sizes_are_found_without_whole_imports) {
  for (const int64_t least : {2, 3, 100, 300}) {
    SCOPED_TRACE(least);
    Imports imports{.is_valid = [&](int64_t, int64_t sequence) { return sequence >= least; },
                    .taken = {}};
    const int64_t most = least == 300 ? 4096 : 512;
    EXPECT_EQ(imports.run(), fmt::format("1..8 x {}..{}", least == 300 ? 300 : least, most));
    EXPECT_EQ(imports.whole, 2);
    EXPECT_LE(imports.largest, 30);
  }
  Imports batches{.is_valid = [](int64_t batch, int64_t) { return batch >= 20; }, .taken = {}};
  EXPECT_EQ(batches.run(), "20..128 x 1..512");
  EXPECT_EQ(batches.whole, 2);
  EXPECT_EQ(batches.taken,
            "m.onnx: batch is 20..128, as the model is not valid at fewer; more may be valid, as "
            "256 is: --shape batch=20..256");
}

// Ranges that end where the rule's do are tried with batched states, too.
TEST(import_ranges, batched_states_may_have_more_least_elements) {
  Imports imports{.is_valid = [](int64_t, int64_t sequence) { return sequence >= 3; },
                  .needs_batched_states = true,
                  .taken = {}};
  EXPECT_EQ(imports.run(), "1..8 x 3..512");
}

// Where sizes are not valid together that are so alone, ranges are tried as a whole.
TEST(import_ranges, sizes_that_are_valid_alone_may_need_whole_imports) {
  Imports imports{
      .is_valid = [](int64_t batch, int64_t sequence) { return sequence >= (batch == 8 ? 2 : 6); },
      .taken = {}};
  EXPECT_EQ(imports.run(), "1..8 x 6..512");
}

// A model that is valid nowhere has the error of the rule's ranges.
TEST(import_ranges, nothing_is_valid) {
  Imports imports{.is_valid = [](int64_t, int64_t) { return false; }, .taken = {}};
  EXPECT_EQ(imports.run(), "not valid");
  EXPECT_EQ(imports.whole, 1);
}

}  // namespace
}  // namespace hone::graph
