#include "hone/remote/machine_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "hone/base/file.h"

namespace hone::remote {
namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

class MachineFile : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
    ASSERT_EQ(mkdir(folder_.file("hone").c_str(), 0700), 0);
    write("hone/token", kToken + "\n", 0600);
  }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }
  std::string write(const std::string& name, const std::string& text, unsigned mode = 0644) {
    EXPECT_TRUE(write_file_atomic(folder_.file(name), text, mode).ok());
    return folder_.file(name);
  }
  // What is wrong with a machine's file of this text, without its path.
  std::string problem(const std::string& text) {
    const std::string path = write("board.toml", text);
    std::string message = parse_machine(path).status().message();
    if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
    return message;
  }
  TempDir folder_ = TempDir::create().value();
};

TEST_F(MachineFile, an_address_has_the_users_own_token) {
  const MachineAddress machine = parse_machine("grpc://board.local:5000").value();
  EXPECT_EQ(machine.connect.address, "board.local:5000");
  EXPECT_EQ(machine.connect.token, kToken);
  EXPECT_TRUE(machine.connect.tls_roots.empty());
  EXPECT_EQ(parse_machine("grpc://[::1]:5000")->connect.address, "[::1]:5000");
}

TEST_F(MachineFile, names_that_are_no_machine_are_errors) {
  for (const char* text : {"grpc://", "grpc://board", "grpc://:5000", "grpc://board:0",
                           "grpc://board:65536", "grpc://board:5000/x", "grpc://user@board:5000"})
    EXPECT_NE(parse_machine(text).status().message().find("expected HOST:PORT"), std::string::npos)
        << text;
  EXPECT_EQ(parse_machine("http://board:5000").status().message(),
            "machine 'http://board:5000', expected grpc://HOST:PORT or a file");
  EXPECT_EQ(parse_machine(folder_.file("missing.toml")).status().code(), Code::kNotFound);
}

TEST_F(MachineFile, a_file_says_the_rest) {
  write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
  write("secret", "another token of mine\n", 0600);
  EXPECT_EQ(problem("address = \"board:5000\"\ntoken_file = \"secret\"\n"),
            folder_.file("secret") + ": a token is one line of visible characters");
  write("secret", "another-token-of-mine\n", 0600);
  const std::string path =
      write("board.toml",
            "# a board\naddress = \"grpc://board:5000\"\ntoken_file = "
            "\"secret\"\ntls_ca = \"ca.pem\"\ntls_name = \"b\"\nwait = \"5m\"\n");
  const MachineAddress machine = parse_machine(path).value();
  EXPECT_EQ(machine.connect.address, "board:5000");
  EXPECT_EQ(machine.connect.token, "another-token-of-mine");
  EXPECT_EQ(machine.connect.tls_roots, "-----BEGIN CERTIFICATE-----\n");
  EXPECT_EQ(machine.connect.tls_name, "b");
  EXPECT_EQ(machine.wait_seconds, 300);
}

TEST_F(MachineFile, what_is_wrong_with_a_file_is_said) {
  EXPECT_EQ(problem(""), "there is no address");
  EXPECT_EQ(problem("address = \"board\""), "address 'board', expected HOST:PORT");
  EXPECT_EQ(problem("address = 5"), "address is no text in quotation marks");
  EXPECT_TRUE(problem("address = \"a:1\"\nadress = \"b:1\"").starts_with("unknown key 'adress'"));
  EXPECT_TRUE(problem("\naddress = ").starts_with("line 2: ")) << problem("\naddress = ");
  EXPECT_TRUE(problem("address = \"a:1\"\nwait = \"long\"").starts_with("wait: "));
  EXPECT_EQ(problem("address = \"a:1\"\ntls_name = \"b\""), "tls_name without tls_ca");
  EXPECT_EQ(problem("address = \"a:1\"\ntls_ca = \"board.toml\""),
            "tls_ca: there is no certificate in board.toml");
}

TEST_F(MachineFile, a_token_is_made_once_and_is_for_its_user_alone) {
  const std::string file = folder_.file("new/token");
  const std::string token = read_or_make_token(file).value();
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(read_or_make_token(file).value(), token);
  struct stat made = {};
  ASSERT_EQ(stat(file.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600U);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_NE(read_token(file).status().message().find("expected a file of mode 600"),
            std::string::npos);
  EXPECT_EQ(read_token(folder_.file("missing")).status().code(), Code::kNotFound);
  EXPECT_NE(read_token(write("short", "short\n", 0600)).status().message().find("5 characters"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::remote
