// Tests how evenly threads share tiles of uneven length. Time is counted, not measured: a tile
// takes the number of units that the test gives it, and the thread whose clock is furthest behind
// always goes on, as if each had a core of its own. So every run has the same course.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "hone/base/rng.h"
#include "hone/runtime/pool_testing.h"

namespace hone::runtime {
namespace {

class CountedTime {
 public:
  CountedTime(std::vector<int64_t> lengths, int threads)
      : lengths_(std::move(lengths)), clocks_(threads), inside_(threads) {}

  // A thread's work on some tiles; returns once its clock is the one that is furthest behind.
  // Before all threads have begun none returns, and none need wait once all tiles have been begun.
  // A thread that stays away for 10 s takes no more: nobody waits from then on.
  void run(int64_t first, int64_t last, int thread) {
    std::unique_lock lock(mutex_);
    for (int64_t i = first; i < last; ++i) clocks_[thread] += lengths_[i];
    begun_ += last - first;
    inside_[thread] = 1;
    changed_.notify_all();
    const bool came = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      return left_ || begun_ == std::ssize(lengths_) || (all_inside() && is_behind(thread));
    });
    left_ = left_ || !came;
    inside_[thread] = 0;
  }
  // Returns the work of the busiest thread relative to the mean.
  [[nodiscard]] double imbalance() const {
    const auto all = static_cast<double>(std::accumulate(clocks_.begin(), clocks_.end(), 0L));
    const auto most = static_cast<double>(*std::max_element(clocks_.begin(), clocks_.end()));
    return most * static_cast<double>(clocks_.size()) / all;
  }

 private:
  [[nodiscard]] bool all_inside() const {
    return std::count(inside_.begin(), inside_.end(), 1) == std::ssize(inside_);
  }
  [[nodiscard]] bool is_behind(int thread) const {
    return std::min_element(clocks_.begin(), clocks_.end()) - clocks_.begin() == thread;
  }

  const std::vector<int64_t> lengths_;
  std::vector<int64_t> clocks_;
  std::vector<char> inside_;  // a kernel
  int64_t begun_ = 0;         // tiles
  bool left_ = false;         // a thread came no more
  std::mutex mutex_;
  std::condition_variable changed_;
};

int take_time(void* const* args, void*, int64_t first, int64_t last, int thread) {
  static_cast<CountedTime*>(args[0])->run(first, last, thread);
  return 0;
}

double imbalance_of(const std::vector<int64_t>& lengths, int threads) {
  const PoolPtr pool = make_pool(threads);
  CountedTime time(lengths, threads);
  void* args[] = {&time};
  const PhaseCall phase = {take_time, args, std::ssize(lengths), 0};
  EXPECT_EQ(pool_run(pool.get(), &phase, 1, nullptr, 0), 0);
  return time.imbalance();
}

TEST(pool, threads_have_even_work_of_uneven_tiles) {
  for (const int threads : {2, 3, 4, 8}) {
    for (const int64_t each : {16, 37, 100}) {  // tiles a thread
      const int64_t tiles = threads * each;
      std::vector<int64_t> lengths(tiles);
      const auto check = [&](const char* how) {
        const double found = imbalance_of(lengths, threads);
        // Half of the long tiles of a share are a large part of the work of eight.
        EXPECT_LE(found, threads < 8 ? 1.25 : 1.3)
            << how << ", " << threads << " threads, " << each << " tiles each";
        EXPECT_EQ(found, imbalance_of(lengths, threads)) << "another course";
      };
      for (int64_t i = 0; i < tiles; ++i) lengths[i] = i < tiles / 2 ? 8 : 1;
      check("the first half is long");
      std::reverse(lengths.begin(), lengths.end());
      check("the last half is long");
      for (int64_t i = 0; i < tiles; ++i) lengths[i] = 1 + i * 8 / tiles;
      check("longer and longer");
      for (int64_t i = 0; i < tiles; ++i) lengths[i] = i % 8 == 0 ? 8 : 1;
      check("every eighth is long");
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        Rng rng(seed);
        for (int64_t& length : lengths) length = rng.chance(0.5) ? 8 : 1;
        check("by chance");
      }
    }
  }
}

}  // namespace
}  // namespace hone::runtime
