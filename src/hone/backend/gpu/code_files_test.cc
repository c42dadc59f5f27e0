#include "hone/backend/gpu/code_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "hone/base/file.h"
#include "hone/base/thread_pool.h"

namespace hone::backend::gpu {
namespace {

class Folder {
 public:
  [[nodiscard]] std::string path() const { return folder_.file("deep/code"); }
  [[nodiscard]] std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(path()))
      all.push_back(entry.path());
    return all;
  }

 private:
  TempDir folder_ = TempDir::create().value();
};

TEST(code_files, what_was_kept_is_found_by_another_process) {
  const Folder folder;
  CodeFiles files(folder.path());
  EXPECT_FALSE(files.find({1, 2}));
  ASSERT_TRUE(files.keep({1, 2}, "some code").ok());
  ASSERT_TRUE(files.keep({2, 2}, "").ok());
  const CodeFiles others(folder.path());
  EXPECT_EQ(others.find({1, 2}), "some code");
  EXPECT_EQ(others.find({2, 2}), "");
  EXPECT_FALSE(others.find({1, 1}));
}

TEST(code_files, a_damaged_file_is_none_and_is_removed) {
  const Folder folder;
  CodeFiles files(folder.path());
  const auto damage = [&](const auto& how) {
    ASSERT_TRUE(files.keep({1, 2}, "some code").ok());
    how(folder.files().at(0));
    EXPECT_FALSE(files.find({1, 2}));
    EXPECT_TRUE(folder.files().empty());
  };
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{45}})
    damage([&](const std::filesystem::path& file) { std::filesystem::resize_file(file, bytes); });
  for (const int at : {0, 9, 20, 33, 44}) {
    damage([&](const std::filesystem::path& path) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at).put('\xff');
    });
  }
  // A file of another key, under this name.
  ASSERT_TRUE(files.keep({1, 2}, "some code").ok());
  const std::filesystem::path name = folder.files().at(0);
  ASSERT_TRUE(files.keep({1, 3}, "other code").ok());
  for (const auto& file : folder.files()) {
    if (file != name) std::filesystem::rename(file, name);
  }
  EXPECT_FALSE(files.find({1, 2}));
}

TEST(code_files, the_oldest_make_room) {
  const Folder folder;
  const std::string kilobyte(1000, 'x');
  for (uint64_t i = 0; i < 20; ++i) {
    // Each looks at the size of all.
    ASSERT_TRUE(CodeFiles(folder.path(), 10'000).keep({i, 0}, kilobyte).ok());
    for (const auto& file : folder.files()) {
      std::filesystem::last_write_time(
          file, std::filesystem::last_write_time(file) - std::chrono::minutes(1));
    }
  }
  const CodeFiles files(folder.path(), 10'000);
  EXPECT_LE(folder.files().size(), 10U);
  EXPECT_GE(folder.files().size(), 6U);
  EXPECT_FALSE(files.find({0, 0}));
  EXPECT_TRUE(files.find({19, 0}));
}

TEST(code_files, many_writers_leave_whole_files) {
  const Folder folder;
  ThreadPool threads(4);
  threads.parallel_for(200, [&](int64_t i) {
    CodeFiles files(folder.path());
    const std::string text(static_cast<size_t>(1000 + i % 5), 'a');
    EXPECT_TRUE(files.keep({static_cast<uint64_t>(i % 5), 0}, text).ok());
    const std::optional<std::string> found = files.find({static_cast<uint64_t>(i % 5), 0});
    EXPECT_EQ(found, text);
  });
  EXPECT_EQ(folder.files().size(), 5U);
}

TEST(code_files, a_folder_that_others_may_write_to_is_not_used) {
  const Folder folder;
  CodeFiles files(folder.path());
  ASSERT_TRUE(files.keep({1, 2}, "some code").ok());
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  EXPECT_FALSE(files.find({1, 2}));
  EXPECT_EQ(files.keep({1, 3}, "code").message(),
            folder.path() + ": expected a folder that only this user may write to");
  EXPECT_EQ(CodeFiles("/dev/null/code").keep({1, 2}, "code").code(), Code::kIo);
}

TEST(code_files, the_folder_is_that_of_the_user) {
  const auto with = [](const char* named, const char* cache, const char* home) {
    std::map<const char*, std::string> before;
    const auto set = [](const char* name, const std::string& value) {
      value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
    };
    for (const auto& [name, value] :
         {std::pair{"HONE_CODE_CACHE", named}, {"XDG_CACHE_HOME", cache}, {"HOME", home}}) {
      const char* now = std::getenv(name);
      before[name] = now == nullptr ? "" : now;
      set(name, value);
    }
    const std::string found = code_folder();
    for (const auto& [name, value] : before) set(name, value);
    return found;
  };
  EXPECT_EQ(with("/a", "/b", "/c"), "/a");
  EXPECT_EQ(with("off", "/b", "/c"), "");
  EXPECT_EQ(with("", "/b", "/c"), "/b/hone/code");
  EXPECT_EQ(with("", "b", "/c"), "/c/.cache/hone/code");
  EXPECT_EQ(with("", "", ""), "");
}

}  // namespace
}  // namespace hone::backend::gpu
