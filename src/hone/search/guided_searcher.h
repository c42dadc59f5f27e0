// search/guided_searcher.h - the frame of the strategies that ask a cost model: the default point
// first, then what the strategy says, a small share of random points, and random points where the
// strategy has run out of its own. Several strategies may share one guide (mixed_searcher.h).
#pragma once

#include "hone/search/guide.h"

namespace hone::search {

// A proposal under construction, which takes only points that were never spent.
class Batch {
 public:
  Batch(Proposals& proposals, int limit) : proposals_(proposals), limit_(limit) {}
  [[nodiscard]] int size() const { return static_cast<int>(points_.size()); }
  [[nodiscard]] int room() const { return limit_ - size(); }
  // Adds the point. Returns false if the batch is full or the point was spent before.
  bool add(const space::Point& point);
  // Adds the first points that are new, `count` at most, and returns how many.
  int add_best(std::span<const Scored> ranked, int count);
  [[nodiscard]] const std::vector<space::Point>& points() const { return points_; }
  [[nodiscard]] std::vector<space::Point> take() { return std::move(points_); }

 private:
  Proposals& proposals_;
  int limit_;
  std::vector<space::Point> points_;
};

class GuidedSearcher : public Searcher {
 public:
  explicit GuidedSearcher(std::shared_ptr<Guide> guide) : guide_(std::move(guide)) {}
  [[nodiscard]] std::vector<space::Point> propose(int n) final;
  void observe(std::span<const space::Point> points, std::span<const double> seconds) final {
    guide_->observe(points, seconds);
  }
  // Adds `count` points at most; fewer if the strategy knows no more.
  virtual void fill(Batch& batch, int count) = 0;

 protected:
  [[nodiscard]] Guide& guide() { return *guide_; }
  [[nodiscard]] const Guide& guide() const { return *guide_; }

 private:
  std::shared_ptr<Guide> guide_;
};

}  // namespace hone::search
