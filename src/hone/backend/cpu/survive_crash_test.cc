#include "hone/backend/survive_crash.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "hone/base/sanitizers.h"

namespace hone::backend::cpu {
namespace {

TEST(survive_crash, an_answer_is_handed_on) {
  EXPECT_TRUE(survive_crash([] { return ok_status(); }).ok());
  EXPECT_EQ(survive_crash([] { return invalid("no"); }).message(), "no");
}

#ifndef HONE_SANITIZER
Status aborts() { std::abort(); }
Status reads_null() {
  volatile int* volatile nowhere = nullptr;
  return *nowhere == 0 ? ok_status() : invalid("something there");
}

TEST(survive_crash, crashes_of_several_threads_are_errors_of_theirs) {
  std::vector<std::thread> threads;
  std::vector<int> crashes(4);
  for (size_t t = 0; t < crashes.size(); ++t) {
    threads.emplace_back([&crashes, t] {
      for (int i = 0; i < 5; ++i) {
        for (Status (*crash)() : {&aborts, &reads_null}) {
          const Status status = survive_crash(crash);
          const bool told = status.message().starts_with("the compiler crashed: ");
          crashes[t] += status.code() == Code::kInternal && told;
        }
        crashes[t] += survive_crash([] { return ok_status(); }).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : crashes) EXPECT_EQ(count, 15);
}

TEST(survive_crash, elsewhere_a_crash_kills_as_before) {
  EXPECT_DEATH(
      {
        (void)survive_crash([] { return ok_status(); });
        std::abort();
      },
      "");
}
#endif

}  // namespace
}  // namespace hone::backend::cpu
