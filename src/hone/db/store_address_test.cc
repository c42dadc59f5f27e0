#include "hone/db/store_address.h"

#include <gtest/gtest.h>

#include "hone/db/registry.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

constexpr const char* kSecret = "s3cret";

TEST(store_address, files_and_servers_are_told_apart) {
  for (const char* where :
       {"", "a.db", "dir/a b.db", "/tmp/a:b@c.db", "./file:a.db", "./postgres:a", "../host=x",
        "trials-2024:03.db", "hone@home.db", "progress:1.db"}) {
    EXPECT_TRUE(check_address(where).ok()) << where << ": " << check_address(where).message();
    EXPECT_FALSE(is_server(where)) << where;
    EXPECT_EQ(store_name(where), where);
  }
  for (const char* where :
       {"postgres://host/db", "postgresql://me:s3cret@host:5432/db?connect_timeout=3",
        "postgres://me:s%403cret@host/db", "postgres://me@host:5432?user=a@b", "postgres://",
        "postgres:///db?host=/var/run/postgresql"}) {
    EXPECT_TRUE(check_address(where).ok()) << where << ": " << check_address(where).message();
    EXPECT_TRUE(is_server(where)) << where;
  }
}

// Each holds a password, which is in no message, and none becomes a file.
TEST(store_address, misspelt_addresses_are_refused_without_a_password) {
  const TestFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const char* where : {"Postgres://me:s3cret@host/db",
                            "POSTGRESQL://me:s3cret@host/db",
                            "postgresq://me:s3cret@host/db",
                            "postgre://me:s3cret@host/db",
                            "postgressql://me:s3cret@host/db",
                            "postgres:/me:s3cret@host/db",
                            "POSTGRESQL:/me:s3cret@host/db",
                            "postgres:me:s3cret@host",
                            " postgres://me:s3cret@host/db",
                            "\tpostgres://me:s3cret@host/db",
                            "'postgres://me:s3cret@host/db'",
                            "psql://me:s3cret@host/db",
                            "mysql://me:s3cret@host/db",
                            "https://me:s3cret@host/db",
                            "jdbc:postgresql://host/db?password=s3cret",
                            "host=db.example.org password=s3cret",
                            "dbname=x PASSWORD = s3cret",
                            "user=me password='s3cret'",
                            "//me:s3cret@host/db",
                            "me:s3cret@host/db",
                            "sqlite:///s3cret.db",
                            "file:s3cret.db?mode=memory",
                            "FILE:s3cret.db"}) {
    const Status status = check_address(where);
    EXPECT_FALSE(status.ok()) << where;
    const auto opened = open_store(where);
    ASSERT_FALSE(opened.ok()) << where;
    EXPECT_EQ(opened.status().message(), status.message());
    for (const std::string& text :
         {status.message(), store_name(where), store_path(where, {}).status().message()})
      EXPECT_EQ(text.find(kSecret), std::string::npos) << text;
  }
  EXPECT_FALSE(check_address(":memory:").ok());
  const auto memory = open_store(":memory:");
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  EXPECT_TRUE((*memory)->add(std::vector{sample_record(1, 1e-3)}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(open_store("./file:a.db").ok());
  EXPECT_TRUE(std::filesystem::exists(folder.file("file:a.db")));
  std::filesystem::current_path(before);
}

// libpq would look for the host "3cret@host", or the port "s", and say so.
TEST(store_address, a_password_that_is_not_encoded_is_refused) {
  for (const char* where : {"postgres://me:s@3cret@host/db", "postgres://me:s/3cret@host/db",
                            "postgres://me:s?3cret@host/db"}) {
    const auto opened = open_store(where);
    ASSERT_FALSE(opened.ok()) << where;
    EXPECT_EQ(
        opened.status().message(),
        "found a server's address with an @ at a place where none belongs, expected %40 for an "
        "@, %2F for a / and %3F for a ? within a password");
  }
}

TEST(store_address, a_password_is_hidden) {
  EXPECT_EQ(without_password("postgres://me:s3cret@host/db"), "postgres://me:******@host/db");
  EXPECT_EQ(without_password("--db=postgres://me:s3cret@host/db?password=s3cret&x=1"),
            "--db=postgres://me:******@host/db?password=******&x=1");
  EXPECT_EQ(without_password("host=h Password=s3cret user=me"), "host=h Password=****** user=me");
  EXPECT_EQ(without_password("postgres://host:5432/db"), "postgres://host:5432/db");
  EXPECT_EQ(without_password("postgres://me@host:5432/db"), "postgres://me@host:5432/db");
  EXPECT_EQ(without_password("a.db"), "a.db");
}

}  // namespace
}  // namespace hone::db
