#include "hone/runtime/process_id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hone::runtime {
namespace {

// The exit code of a forked child that runs `check`, which returns whether all is as expected.
template <typename Check>
int exit_code_of_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(process_id, is_that_of_each_process_which_asks) {
  ProcessId id;
  id.begin();
  EXPECT_EQ(id.get(), getpid());
  EXPECT_EQ(id.get(), getpid()) << "asked again";
  const auto child = [&] {
    const auto grandchild = [&] { return id.get() == getpid() && id.get() == getpid(); };
    return id.get() == getpid() && exit_code_of_child(grandchild) == 0 && id.get() == getpid();
  };
  EXPECT_EQ(exit_code_of_child(child), 0);
  EXPECT_EQ(id.get(), getpid()) << "after its child asked";
  id.end();
}

TEST(process_id, is_right_in_a_child_that_asks_first) {
  ProcessId id;
  id.begin();
  EXPECT_EQ(exit_code_of_child([&] { return id.get() == getpid(); }), 0);
  EXPECT_EQ(id.get(), getpid());
  id.end();
}

TEST(process_id, works_without_memory_of_its_own) {
  ProcessId id;
  EXPECT_EQ(id.get(), getpid());
  EXPECT_EQ(exit_code_of_child([&] { return id.get() == getpid(); }), 0);
  id.begin();
  id.end();
  id.end();
  EXPECT_EQ(id.get(), getpid()) << "after its end";
}

}  // namespace
}  // namespace hone::runtime
