#include "hone/base/installation.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace hone {
namespace {

namespace fs = std::filesystem;

const fs::path program = fs::read_symlink("/proc/self/exe");

TEST(installation, code_that_is_linked_statically_is_in_the_program) {
  EXPECT_EQ(own_file(), program.string());
  EXPECT_EQ(beside_own_file("other"), (program.parent_path() / "other").string());
}

TEST(installation, the_folder_above_comes_before_the_configured_prefix) {
  const auto places = installed_places("share/hone/records");
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0], (program.parent_path().parent_path() / "share/hone/records").string());
  EXPECT_TRUE(fs::path(places[1]).is_absolute());
  EXPECT_TRUE(places[1].ends_with("/share/hone/records")) << places[1];
}

}  // namespace
}  // namespace hone
