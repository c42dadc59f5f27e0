#include "hone/base/worker_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "hone/base/wire.h"
#include "hone/measure/runner_testing.h"

namespace hone::measure {
namespace {

using wire::kProtocolVersion;

// Sets the variable HONE_WORKER, or unsets it with null, until its end.
class Variable {
 public:
  explicit Variable(const char* value) {
    if (const char* now = std::getenv("HONE_WORKER")) before_ = now;
    set(value);
  }
  ~Variable() { set(before_.empty() ? nullptr : before_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  static void set(const char* value) {
    value == nullptr ? unsetenv("HONE_WORKER") : setenv("HONE_WORKER", value, 1);
  }
  std::string before_;
};

std::string found_program(const std::string& given) {
  const auto found = find_worker_program(given);
  return found.ok() ? *found : std::string(found.status().message());
}

TEST(worker_program, is_found_in_the_installation_of_this_code) {
  const Variable unset(nullptr);
  const std::string found = found_program("");
  EXPECT_TRUE(found.ends_with("/libexec/hone/hone-worker")) << found;
  EXPECT_EQ(access(found.c_str(), X_OK), 0);
}

TEST(worker_program, an_option_comes_before_the_variable_and_that_before_the_installation) {
  const Variable named("/bin/sh");
  EXPECT_EQ(found_program(""), "/bin/sh");
  EXPECT_EQ(found_program("/bin/true"), "/bin/true");
  const Variable empty("");
  EXPECT_TRUE(found_program("").ends_with("hone-worker"));
}

TEST(worker_program, what_cannot_be_executed_is_named) {
  for (const char* place : {"/nonexistent", "/etc/passwd", "/bin"}) {
    const Variable named(place);
    const auto found = find_worker_program("");
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), Code::kNotFound);
    EXPECT_NE(found.status().message().find(std::string(" at ") + place + ";"), std::string::npos)
        << found.status().message();
  }
}

TEST(worker_program, a_relative_path_is_refused) {
  const Variable named("hone-worker");
  const auto found = find_worker_program("");
  EXPECT_EQ(found.status().message(), "HONE_WORKER: 'hone-worker', expected an absolute path");
}

TEST(worker_program, another_version_is_one_error) {
  // The header of a hello: magic, version, type, padding and the length of the body.
  const std::string hello = fmt::format(R"(printf 'HNEW\{:03o}\0\0\0\1\0\0\0\0\0\0\0')"
                                        R"( >&3; printf '\0\0\0\0\0\0\0\0' >&3; sleep 60)",
                                        kProtocolVersion + 1);
  const auto runner = make_local_runner({.executable = "/bin/sh", .arguments = {"-c", hello}});
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.status().message(),
            fmt::format("worker /bin/sh did not start: the worker speaks protocol version {}, "
                        "expected {}",
                        kProtocolVersion + 1, kProtocolVersion));
}

}  // namespace
}  // namespace hone::measure
