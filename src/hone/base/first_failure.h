// base/first_failure.h - the first of the errors that several threads may meet, after which the
// work that they share is to end.
#pragma once

#include <atomic>
#include <mutex>

#include "hone/base/status.h"

namespace hone {

class FirstFailure {
 public:
  // Keeps the error, unless there was one before.
  void add(const Status& error) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = error;
    failed_ = !status_.ok();
  }
  [[nodiscard]] bool failed() const { return failed_; }
  // Returns that error, or ok.
  [[nodiscard]] Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  Status status_;
};

}  // namespace hone
