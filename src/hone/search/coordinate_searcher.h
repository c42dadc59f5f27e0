// search/coordinate_searcher.h - descent along one decision at a time from a centre, the moves that
// the cost model likes best first. The centre moves to a point that was measured significantly
// faster; once no move along any decision can be expected to gain a significant amount, the descent
// has ended and starts again elsewhere.
#pragma once

#include <optional>

#include "hone/search/guided_searcher.h"

namespace hone::search {

struct CoordinateOptions {
  double significance = 0.01;  // gains below this share of the time are noise
  double confidence = 1.6;     // standard deviations by which a move may beat its prediction
  size_t descent_after = 0;    // measurements before the first descent
  int samples = 256;           // samples among which a new start is chosen
  size_t kicks = 3;            // mutations from the best to a new start, every second time
};

class CoordinateSearcher : public GuidedSearcher {
 public:
  explicit CoordinateSearcher(std::shared_ptr<Guide> guide, const CoordinateOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "coordinate"; }
  void fill(Batch& batch, int count) override;
  // Adds at most `count` moves from the centre that may gain, and returns how many.
  int descend(Batch& batch, int count);
  [[nodiscard]] int restarts() const { return restarts_; }

 private:
  void choose_centre();
  [[nodiscard]] std::vector<Scored> moves();
  [[nodiscard]] std::optional<Scored> new_start();

  CoordinateOptions options_;
  std::optional<space::Point> centre_;
  int restarts_ = 0;
};

}  // namespace hone::search
