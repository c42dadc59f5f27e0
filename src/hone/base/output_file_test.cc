#include "hone/base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "hone/base/file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file(const char* name) const { return folder_.file(name); }
  [[nodiscard]] size_t entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  static unsigned mode_of(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  TempDir folder_ = TempDir::create("hone_output_test").value();
};

TEST_F(OutputFileTest, nothing_is_there_before_the_end) {
  Result<OutputFile> output = OutputFile::create(file("a"));
  ASSERT_TRUE(output.ok()) << output.status().message();
  ASSERT_TRUE(output->write("one ").ok());
  ASSERT_TRUE(output->write("two").ok());
  EXPECT_FALSE(file_exists(file("a")));
  ASSERT_TRUE(output->finish().ok());
  EXPECT_EQ(*read_file(file("a")), "one two");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, what_is_not_finished_leaves_the_old_file_alone) {
  ASSERT_TRUE(write_file_atomic(file("a"), "old").ok());
  {
    Result<OutputFile> output = OutputFile::create(file("a"));
    ASSERT_TRUE(output.ok() && output->write("new").ok());
    EXPECT_EQ(entries(), 2u);
  }
  EXPECT_EQ(*read_file(file("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, a_link_that_leads_nowhere_gets_its_file) {
  fs::create_symlink("real", file("middle"));  // relative to its folder
  fs::create_symlink(file("middle"), file("link"));
  EXPECT_EQ(link_target(file("link")), file("real"));
  ASSERT_TRUE(write_file_atomic(file("link"), "x").ok());
  EXPECT_TRUE(fs::is_symlink(file("link")) && fs::is_symlink(file("middle")));
  EXPECT_EQ(*read_file(file("real")), "x");
}

TEST_F(OutputFileTest, links_in_a_circle_end) {
  fs::create_symlink("two", file("one"));
  fs::create_symlink("one", file("two"));
  EXPECT_FALSE(write_file_atomic(file("one"), "x").ok());
  EXPECT_TRUE(fs::is_symlink(file("one")) && fs::is_symlink(file("two")));
}

TEST_F(OutputFileTest, a_published_file_takes_the_place_and_the_permissions) {
  ASSERT_TRUE(write_file_atomic(file("made"), "new", 0755).ok());
  ASSERT_TRUE(write_file_atomic(file("real"), "old").ok());
  ASSERT_EQ(::chmod(file("real").c_str(), 0600), 0);
  fs::create_symlink("real", file("link"));
  ASSERT_TRUE(publish_file(file("made"), file("link")).ok());
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_EQ(*read_file(file("real")), "new");
  EXPECT_EQ(mode_of(file("real")), 0600u);
  EXPECT_FALSE(file_exists(file("made")));
}

TEST_F(OutputFileTest, a_new_published_file_keeps_its_own_permissions) {
  ASSERT_TRUE(write_file_atomic(file("made"), "new").ok());
  ASSERT_EQ(::chmod(file("made").c_str(), 0751), 0);
  ASSERT_TRUE(publish_file(file("made"), file("a")).ok());
  EXPECT_EQ(mode_of(file("a")), 0751u);
}

TEST_F(OutputFileTest, a_pipe_is_written_to_and_stays) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(is_stream(file("pipe")));
  for (const bool published : {false, true}) {
    ASSERT_TRUE(write_file_atomic(file("made"), "through the pipe").ok());
    const int reader = ::open(file("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader, 0);
    const Status status = published ? publish_file(file("made"), file("pipe"))
                                    : write_file_atomic(file("pipe"), "through the pipe");
    EXPECT_TRUE(status.ok()) << status.message();
    char text[64] = {};
    EXPECT_EQ(::read(reader, text, sizeof text), 16);
    EXPECT_STREQ(text, "through the pipe");
    ::close(reader);
    struct stat info = {};
    ASSERT_EQ(::stat(file("pipe").c_str(), &info), 0);
    EXPECT_TRUE(S_ISFIFO(info.st_mode));
  }
}

TEST_F(OutputFileTest, a_device_is_written_to_and_stays) {
  ASSERT_TRUE(write_file_atomic(file("made"), "x").ok());
  ASSERT_TRUE(publish_file(file("made"), "/dev/null").ok());
  EXPECT_TRUE(is_stream("/dev/null"));
  const Status full = publish_file(file("made"), "/dev/full");
  EXPECT_EQ(full.message(), "cannot write '/dev/full': no space left on device");
}

TEST_F(OutputFileTest, folders_and_missing_folders_are_refused) {
  ASSERT_TRUE(write_file_atomic(file("made"), "x").ok());
  EXPECT_EQ(publish_file(file("made"), folder_.path()).code(), Code::kInvalid);
  EXPECT_EQ(publish_file(file("made"), file("no/such")).code(), Code::kNotFound);
  EXPECT_FALSE(is_stream(folder_.path()));
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace hone
