#include "hone/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

namespace hone {
namespace {

TEST(thread_pool, parallel_for_visits_each_index_once) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
      pool.parallel_for(n, [&](int64_t i) { ++visits[static_cast<size_t>(i)]; });
      for (const auto& count : visits)
        EXPECT_EQ(count.load(), 1) << threads << " threads, n = " << n;
    }
  }
}

TEST(thread_pool, one_thread_means_the_caller) {
  ThreadPool pool(1);
  std::set<std::thread::id> ids;
  pool.parallel_for(100, [&](int64_t) { ids.insert(std::this_thread::get_id()); });
  EXPECT_EQ(ids, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(thread_pool, threads_work_at_the_same_time) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0;
  pool.parallel_for(3, [&](int64_t) {  // ends only if all three are running
    ++arrived;
    while (arrived.load() < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 3);
}

TEST(thread_pool, parallel_for_nests) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(
      20, [&](int64_t i) { pool.parallel_for(20, [&](int64_t j) { sum += i * 20 + j; }); });
  EXPECT_EQ(sum.load(), 400 * 399 / 2);
}

TEST(thread_pool, submit_returns_the_value) {
  ThreadPool pool(2);
  std::vector<std::future<int>> futures;
  for (int i = 0; i < 50; ++i) futures.push_back(pool.submit([i] { return i * i; }));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(futures[static_cast<size_t>(i)].get(), i * i);
}

TEST(thread_pool, the_end_waits_for_what_was_submitted) {
  std::atomic<int> done = 0;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 100; ++i) std::ignore = pool.submit([&] { ++done; });
  }
  EXPECT_EQ(done.load(), 100);
}

}  // namespace
}  // namespace hone
