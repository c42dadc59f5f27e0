#include "command_tree.h"

#include <gtest/gtest.h>

#include "completion.h"
#include "manual_page.h"

namespace hone::tool {
namespace {

struct Program {
  CLI::App app{"Does things", "hone"};
  std::string device = "host", model;
  bool fast = false;
  Program() {
    CLI::App* make = app.add_subcommand("make", "Make a thing: quickly");
    make->add_option("--device", device, "It's a device. More words")
        ->type_name("NAME")
        ->capture_default_str();
    make->add_option("model", model, "The model")->required()->type_name("MODEL");
    make->add_flag("-f,--fast", fast, ".5 times the \\time");
    make->add_flag("--secret", fast, "hidden")->group("");
    app.add_subcommand("hidden", "Hidden")->group("");
    app.add_subcommand("db", "Data")->add_subcommand("show", "Show it");
  }
};

TEST(command_tree, has_what_help_shows) {
  const Program program;
  const CommandText root = command_text(program.app);
  std::vector<std::string> paths;
  for_each_command(root, [&](const CommandText& command) { paths.push_back(command.path); });
  EXPECT_EQ(paths, (std::vector<std::string>{"", "make", "db", "db show"}));
  const CommandText& make = root.commands[0];
  ASSERT_EQ(make.positionals.size(), 1U);
  EXPECT_EQ(make.positionals[0].value, "MODEL");
  ASSERT_EQ(make.options.size(), 3U);  // with --help
  EXPECT_EQ(make.options[1].initial, "host");
  EXPECT_FALSE(make.options[1].words.empty());
  EXPECT_EQ(make.options[2].names, (std::vector<std::string>{"-f", "--fast"}));
  EXPECT_TRUE(make.options[2].value.empty());
}

TEST(command_tree, brief_ends_before_details) {
  EXPECT_EQ(brief("Make a thing: quickly"), "Make a thing");
  EXPECT_EQ(brief("The first line\nand more"), "The first line");
  EXPECT_EQ(brief("All of it"), "All of it");
}

TEST(completion, quotes_what_shells_would_read) {
  const Program program;
  const CommandText root = command_text(program.app);
  EXPECT_NE(completion_script("zsh", root)->find(R"('--device:It'\''s a device')"),
            std::string::npos);
  EXPECT_NE(completion_script("fish", root)->find(R"(-d 'It\'s a device')"), std::string::npos);
  EXPECT_EQ(completion_script("tcsh", root).status().code(), Code::kInvalid);
}

TEST(manual_page, escapes_what_troff_would_read) {
  const Program program;
  const CommandText root = command_text(program.app);
  EXPECT_EQ(manual_name(root.commands[1].commands[0]), "hone-db-show");
  const std::string page = manual_page(root.commands[0]);
  EXPECT_NE(page.find(".TP\n\\fB\\-\\-device\\fR \\fINAME\\fR (default: host)\nIt's a device"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("\n\\&.5 times the \\etime\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace hone::tool
