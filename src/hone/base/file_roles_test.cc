#include "hone/base/file_roles.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "hone/base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

class FileRolesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_file_atomic(file("a"), "x").ok()); }
  [[nodiscard]] std::string file(const char* name) const { return folder_.file(name); }
  // That of MODEL and of --output.
  static Status check(const std::string& input, const std::string& output) {
    FileRoles files;
    files.read("MODEL", input);
    files.written("--output", output);
    return files.check();
  }
  TempDir folder_ = TempDir::create("hone_roles_test").value();
};

TEST_F(FileRolesTest, other_files_are_fine) {
  EXPECT_TRUE(check(file("a"), file("b")).ok());
  ASSERT_TRUE(write_file_atomic(file("b"), "x").ok());
  EXPECT_TRUE(check(file("a"), file("b")).ok());
  EXPECT_TRUE(check(file("absent"), file("other")).ok());
  EXPECT_TRUE(check(file("no/folder"), file("no/folder")).ok());  // neither can be opened
}

TEST_F(FileRolesTest, an_input_is_no_output_by_whatever_name) {
  EXPECT_EQ(check(file("a"), file("a")).message(),
            fmt::format("--output: '{0}' is the same file as '{0}', which MODEL reads; expected "
                        "another file",
                        file("a")));
  fs::create_symlink("a", file("link"));
  fs::create_symlink(folder_.path(), file("folder"));
  fs::create_hard_link(file("a"), file("hard"));
  for (const char* name : {"./a", "link", "folder/a", "hard", "folder/link"}) {
    EXPECT_EQ(check(file("a"), file(name)).code(), Code::kInvalid) << name;
    EXPECT_EQ(check(file(name), file("a")).code(), Code::kInvalid) << name;
  }
}

TEST_F(FileRolesTest, two_outputs_are_two_files_even_before_they_are_there) {
  fs::create_symlink("new", file("link"));
  for (const char* name : {"new", "./new", "link"}) {
    FileRoles files;
    files.written("--output", file("new"));
    files.written("--header", file(name));
    EXPECT_NE(files.check().message().find("which --header writes"), std::string::npos)
        << files.check().message();
  }
}

TEST_F(FileRolesTest, databases_are_read_and_written) {
  FileRoles both;
  both.updated("--db", file("a"));
  both.written("--output", file("a"));
  EXPECT_NE(both.check().message().find("which --db reads"), std::string::npos);
  FileRoles other;
  other.updated("--db", file("a"));
  other.read("DB", file("a"));
  EXPECT_EQ(other.check().code(), Code::kInvalid);
  FileRoles twice;
  twice.read("--db", file("a"));
  twice.read("--replay-db", file("a"));
  EXPECT_TRUE(twice.check().ok());
}

TEST_F(FileRolesTest, devices_serve_twice) {
  EXPECT_TRUE(check("/dev/null", "/dev/null").ok());
  EXPECT_FALSE(identity_of("/dev/null"));
  EXPECT_FALSE(identity_of(folder_.path()));
}

TEST_F(FileRolesTest, an_open_file_counts) {
  const int fd = ::open(file("a").c_str(), O_WRONLY | O_CLOEXEC);
  FileRoles files;
  files.read("MODEL", file("a"));
  files.written("standard output", fd);
  EXPECT_NE(files.check().message().find("standard output"), std::string::npos);
  ::close(fd);
  FileRoles closed;
  closed.read("MODEL", file("a"));
  closed.written("standard output", -1);
  EXPECT_TRUE(closed.check().ok());
}

}  // namespace
}  // namespace hone
