// search/beam_searcher.h - beam search over the decisions of a sketch, one after the other: each
// partial choice is tried with every option of the next decision, judged by the cost model with the
// decisions that are still open taken from an incumbent, and the best few go on.
#pragma once

#include "hone/search/guided_searcher.h"

namespace hone::search {

struct BeamOptions {
  size_t width = 8;
  size_t incumbents = 3;            // measured points that complete the partial choices, in turns
  double random_completion = 0.25;  // share of the searches that start from a sample instead
};

class BeamSearcher : public GuidedSearcher {
 public:
  explicit BeamSearcher(std::shared_ptr<Guide> guide, const BeamOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "beam"; }
  void fill(Batch& batch, int count) override;

 private:
  [[nodiscard]] std::vector<Scored> search(const space::Point& incumbent);
  [[nodiscard]] space::Point next_incumbent();
  BeamOptions options_;
  size_t searches_ = 0;
};

}  // namespace hone::search
