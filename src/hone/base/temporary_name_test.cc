#include "hone/base/temporary_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "hone/base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

class StaleFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(shared());
    left_ = killed_name();
  }
  [[nodiscard]] std::string shared() const { return folder_.file("shared"); }
  [[nodiscard]] std::string in_shared(const std::string& name) const {
    return shared() + "/" + name;
  }
  // A name that a process made which is dead.
  static std::string killed_name() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string name = temporary_name("work");
      (void)!::write(ends[1], name.data(), name.size());
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    char text[256];
    const ssize_t length = ::read(ends[0], text, sizeof text);
    ::close(ends[0]);
    ::close(ends[1]);
    return {text, static_cast<size_t>(length)};
  }
  TempDir folder_ = TempDir::create("hone_stale_test").value();
  std::string left_;
};

TEST_F(StaleFiles, names_differ_and_say_who_made_them) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(temporary_name("work"));
  EXPECT_EQ(names.size(), 100u);
  EXPECT_TRUE(names.begin()->starts_with(fmt::format("work.hone-{}-", ::getpid())));
}

TEST_F(StaleFiles, a_process_that_ends_at_once_removes_its_own_alone) {
  clear_stale_files(shared());
  for (const std::string& name : {left_, std::string("model.so")})
    ASSERT_TRUE(write_file_atomic(in_shared(name), "x").ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string own = in_shared(temporary_name("work"));
    fs::create_directories(own + "/inner");
    const bool was_there = fs::exists(own);
    remove_own_temporaries();
    ::_exit(was_there && !fs::exists(own) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(in_shared(left_)));
  EXPECT_TRUE(fs::exists(in_shared("model.so")));
}

TEST_F(StaleFiles, what_a_killed_process_left_goes) {
  fs::create_directories(in_shared(left_ + "/inner"));
  ASSERT_TRUE(write_file_atomic(in_shared(left_ + "/inner/a"), "x").ok());
  const std::string file = killed_name();
  ASSERT_TRUE(write_file_atomic(in_shared(file), "x").ok());
  clear_stale_files(shared());
  EXPECT_FALSE(file_exists(in_shared(left_)));
  // It was written by this process, which has looked at the folder then.
  clear_stale_files(shared() + "/");
  EXPECT_FALSE(file_exists(in_shared(file)));
}

TEST_F(StaleFiles, what_is_locked_stays) {
  fs::create_directory(in_shared(left_));
  const int lock = ::open(in_shared(left_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  clear_stale_files(shared());
  EXPECT_TRUE(file_exists(in_shared(left_)));
  ::close(lock);
}

TEST_F(StaleFiles, what_a_living_process_made_stays) {
  const std::string own = temporary_name("work");
  fs::create_directory(in_shared(own));
  clear_stale_files(shared());
  EXPECT_TRUE(file_exists(in_shared(own)));
}

TEST_F(StaleFiles, other_names_stay) {
  const std::set<std::string> names = {"a",
                                       "hone-run.Xy1234",
                                       "work.hone-1-2",
                                       "work.hone-999999-1-abcdefg",
                                       "work.hone-999999-1-abcdefgz",
                                       left_ + ".txt",
                                       left_ + "a"};
  for (const std::string& name : names) fs::create_directory(in_shared(name));
  clear_stale_files(shared());
  for (const std::string& name : names) EXPECT_TRUE(file_exists(in_shared(name))) << name;
}

TEST_F(StaleFiles, links_and_pipes_of_such_a_name_stay) {
  fs::create_directory(in_shared("real"));
  fs::create_symlink("real", in_shared(left_));
  clear_stale_files(shared());
  EXPECT_TRUE(fs::is_symlink(in_shared(left_)));
  EXPECT_TRUE(file_exists(in_shared("real")));
}

TEST_F(StaleFiles, a_new_folder_clears_the_old_ones_beside_it) {
  fs::create_directory(in_shared(left_));
  const TempDir folder = TempDir::create("other", shared()).value();
  EXPECT_FALSE(file_exists(in_shared(left_)));
  EXPECT_TRUE(file_exists(folder.path()));
}

}  // namespace
}  // namespace hone
