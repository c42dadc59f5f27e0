#include "hone/db/store_to_add.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

// A command that opens a database and then fails leaves nothing behind.
TEST(store_to_add, a_file_is_made_when_something_is_stored) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const auto store = open_store_to_add(path).value(), other = open_store_to_add(path).value();
  EXPECT_EQ(store->query({})->size(), 0U);
  EXPECT_TRUE(store->verify()->empty());
  EXPECT_TRUE(store->add({}).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(store->add(std::vector{sample_record(1, 1e-3)}).ok());
  EXPECT_TRUE(std::filesystem::exists(path));
  // Others that opened it before see what was stored, and add to it.
  EXPECT_EQ(other->query({})->size(), 1U);
  ASSERT_TRUE(other->add(std::vector{sample_record(1, 2e-3)}).ok());
  EXPECT_EQ(store->query({})->size(), 2U);
}

// The folders of the default database are made with it.
TEST(store_to_add, the_default_folder_is_made_when_something_is_stored) {
  const TestFolder folder;
  const char* const given = std::getenv("XDG_DATA_HOME");
  const std::string old = given == nullptr ? "" : given;
  setenv("XDG_DATA_HOME", folder.file("data/of/user").c_str(), 1);
  const auto opened = open_store_to_add("");
  old.empty() ? unsetenv("XDG_DATA_HOME") : setenv("XDG_DATA_HOME", old.c_str(), 1);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const std::unique_ptr<Store>& store = *opened;
  EXPECT_EQ(store->query({})->size(), 0U);
  EXPECT_FALSE(std::filesystem::exists(folder.file("data")));
  const Status added = store->add(std::vector{sample_record(1, 1e-3)}).status();
  ASSERT_TRUE(added.ok()) << added.message();
  EXPECT_TRUE(std::filesystem::exists(folder.file("data/of/user/hone/hone.db")));
  EXPECT_EQ(store->query({})->size(), 1U);
}

TEST(store_to_add, nothing_is_added_to_a_store_that_would_be_lost) {
  const auto store = open_store_to_add(":memory:");
  EXPECT_NE(store.status().message().find("would keep nothing"), std::string::npos)
      << store.status().message();
}

TEST(store_to_add, a_file_that_cannot_be_made_is_an_error_at_once) {
  const TestFolder folder;
  const auto store = open_store_to_add(folder.file("nowhere/a.db"));
  EXPECT_NE(store.status().message().find("does not exist"), std::string::npos)
      << store.status().message();
}

}  // namespace
}  // namespace hone::db
