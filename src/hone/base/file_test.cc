#include "hone/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

namespace hone {
namespace {

namespace fs = std::filesystem;

TempDir make_dir() {
  Result<TempDir> dir = TempDir::create("hone_file_test");
  EXPECT_TRUE(dir.ok()) << dir.status().message();
  return std::move(dir).value();
}

size_t entries(const std::string& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

TEST(file, what_is_written_is_read) {
  const TempDir dir = make_dir();
  std::string contents(100'000, '\0');
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 7);
  for (const std::string& text : {contents, std::string(), std::string("short")}) {
    ASSERT_TRUE(write_file_atomic(dir.file("a"), text).ok());
    Result<std::string> read = read_file(dir.file("a"));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, text);
  }
  EXPECT_EQ(entries(dir.path()), 1u);  // no temporary file is left
}

TEST(file, sizeless_files_are_read_to_the_end) {
  Result<std::string> read = read_file("/proc/self/status");
  ASSERT_TRUE(read.ok());
  EXPECT_NE(read->find("Threads:"), std::string::npos);
}

TEST(file, errors_name_the_path_and_the_reason) {
  const TempDir dir = make_dir();
  const std::string missing = dir.file("no/such/file");
  EXPECT_EQ(read_file(missing).status().code(), Code::kNotFound);
  EXPECT_EQ(read_file(missing).status().message(),
            fmt::format("cannot read '{}': no such file or directory", missing));
  EXPECT_EQ(write_file_atomic(missing, "x").message(),
            fmt::format("cannot write '{}': no such file or directory", missing));
  EXPECT_EQ(read_file(dir.path()).status().code(), Code::kInvalid);
  EXPECT_EQ(write_file_atomic(dir.path(), "x").code(), Code::kInvalid);
  EXPECT_TRUE(file_exists(dir.path()));
  EXPECT_FALSE(file_exists(missing));
}

TEST(file, full_disk_is_reported) {
  const Status status = write_file_atomic("/dev/full", "x");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(), "cannot write '/dev/full': no space left on device");
}

TEST(file, failed_write_leaves_the_old_file_and_no_other) {
  const TempDir dir = make_dir();
  ASSERT_TRUE(write_file_atomic(dir.file("a"), "old").ok());
  // A limit on the size of files stands in for a full disk.
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file_atomic(dir.file("a"), std::string(100'000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(*read_file(dir.file("a")), "old");
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(file, links_are_followed_and_permissions_kept) {
  const TempDir dir = make_dir();
  ASSERT_TRUE(write_file_atomic(dir.file("real"), "old", 0640).ok());
  fs::create_symlink(dir.file("real"), dir.file("link"));
  ASSERT_TRUE(write_file_atomic(dir.file("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(dir.file("link")));
  EXPECT_EQ(*read_file(dir.file("real")), "new");
  struct stat info;
  ASSERT_EQ(::stat(dir.file("real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(file, devices_are_written_in_place) {
  ASSERT_TRUE(write_file_atomic("/dev/null", "x").ok());
  struct stat info;
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(file, only_files_and_pipes_are_read) {
  const TempDir dir = make_dir();
  for (const char* device : {"/dev/zero", "/dev/null"}) {
    EXPECT_EQ(read_file(device).status().message(),
              fmt::format("cannot read '{}': it is a device, expected a file", device));
  }
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(
      read_file(pipe).status().message(),
      fmt::format("cannot read '{}': it is a pipe that nobody writes to, expected a file", pipe));
  // While this is open there are a reader and a writer.
  const int both = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  std::thread writer([&] {
    EXPECT_TRUE(write_file_atomic(pipe, std::string(200'000, 'x')).ok());
    ::close(both);
  });
  const Result<std::string> read = read_file(pipe);
  writer.join();
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, std::string(200'000, 'x'));
}

TEST(file, a_file_larger_than_the_memory_is_not_read) {
  const TempDir dir = make_dir();
  ASSERT_TRUE(write_file_atomic(dir.file("huge"), "x").ok());
  ASSERT_EQ(::truncate(dir.file("huge").c_str(), int64_t{1} << 40), 0);
  const Status status = read_file(dir.file("huge")).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("it has 1099511627776 bytes, expected at most"),
            std::string::npos)
      << status.message();
}

TEST(file, temporary_directory_goes_with_its_owner) {
  std::string path;
  {
    TempDir dir = make_dir();
    path = dir.path();
    ASSERT_TRUE(write_file_atomic(dir.file("a"), "x").ok());
    const TempDir moved = std::move(dir);
    EXPECT_TRUE(file_exists(moved.file("a")));
  }
  EXPECT_FALSE(file_exists(path));
}

}  // namespace
}  // namespace hone
