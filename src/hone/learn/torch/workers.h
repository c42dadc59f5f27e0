// learn/torch/workers.h - the threads that train. Each computes by itself, as libtorch is limited
// to one thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "hone/base/thread_pool.h"

namespace hone::learn::torch_module {

class Workers {
 public:
  explicit Workers(int threads) {
    if (threads > 1) pool_ = std::make_unique<ThreadPool>(threads);
  }
  [[nodiscard]] int threads() const { return pool_ ? pool_->threads() : 1; }

  // Calls f(0) to f(n - 1), on any thread and in any order, and throws the first exception of them.
  void for_each(int64_t n, const std::function<void(int64_t)>& f) {
    if (!pool_ || n <= 1) {
      for (int64_t i = 0; i < n; ++i) f(i);
      return;
    }
    std::vector<std::exception_ptr> thrown(static_cast<size_t>(n));
    pool_->parallel_for(n, [&](int64_t i) {
      try {
        f(i);
      } catch (...) {
        thrown[static_cast<size_t>(i)] = std::current_exception();
      }
    });
    for (const std::exception_ptr& e : thrown) {
      if (e) std::rethrow_exception(e);
    }
  }

 private:
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace hone::learn::torch_module
