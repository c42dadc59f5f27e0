#include "hone/runtime/placement.h"

namespace hone::runtime {

void Placement::begin(int num_threads) {
  if (num_threads < 2 || num_threads > kMostPlaced) return;
  // This fails on machines of more CPUs than the set has room for, where idle ones are at hand.
  if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;
  on_ = CPU_COUNT(&all_) >= num_threads;
  now_ = all_;
}

void Placement::follow_caller() {
  before_ = now_;
  now_ = all_;
  cpu_ = sched_getcpu();
  if (cpu_ >= 0) CPU_CLR(static_cast<unsigned>(cpu_), &now_);
}

bool Placement::place(pthread_t thread) {
  cpu_set_t found;
  on_ = pthread_getaffinity_np(thread, sizeof found, &found) == 0 && CPU_EQUAL(&found, &before_) &&
        pthread_setaffinity_np(thread, sizeof now_, &now_) == 0;
  return on_;
}

void Placement::release(pthread_t thread) const {
  cpu_set_t found;
  if (pthread_getaffinity_np(thread, sizeof found, &found) != 0) return;
  if (CPU_EQUAL(&found, &before_) || CPU_EQUAL(&found, &now_))
    pthread_setaffinity_np(thread, sizeof all_, &all_);
}

}  // namespace hone::runtime
