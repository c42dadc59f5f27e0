// The goldens of a pass, goldens/NAME.txt: cases, each a line "== what it shows", a program, and
// "-- becomes" with the program that the pass makes of it or "-- stays". After a change that means
// to move them, `hone_ir_passes_test --update-goldens` writes them anew; a new case may have its
// title and first program only. The interpreter runs both programs, so that no golden can bless a
// pass that changes what is computed.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string_view>

#include "hone/base/file.h"
#include "hone/ir/parser.h"
#include "hone/ir/passes/check_pass_testing.h"

namespace hone::ir {
namespace {

bool update_goldens = false;

const std::filesystem::path kFolder = HONE_PASS_GOLDENS;

struct Case {
  std::string title, before, after;  // after is empty if the program stays
};

std::vector<Case> read_cases(std::string_view text) {
  std::vector<Case> cases;
  std::string* part = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("== ")) {
      cases.push_back({std::string(line), "", ""});
      part = &cases.back().before;
    } else if (line.starts_with("-- ")) {
      part = &cases.back().after;
    } else if (part != nullptr) {
      *part += line;
    }
  }
  return cases;
}

std::string to_text(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& c : cases) {
    text += c.title + c.before;
    text += c.after.empty() ? "-- stays\n" : "-- becomes\n" + c.after;
  }
  return text;
}

std::vector<Pass> all_passes() {
  std::vector<Pass> passes;
  for (const std::span<const Pass> list : {cpu_pipeline(), gpu_pipeline()})
    passes.insert(passes.end(), list.begin(), list.end());
  return testing::distinct(passes);
}

class Goldens : public ::testing::TestWithParam<Pass> {};

TEST_P(Goldens, the_pass_makes_these_programs_and_keeps_what_they_compute) {
  const Pass& pass = GetParam();
  const std::string path = kFolder / (std::string(pass.name) + ".txt");
  const Result<std::string> text = read_file(path);
  ASSERT_TRUE(text.ok()) << text.status().message();
  std::vector<Case> made;
  int changed = 0;
  for (const Case& golden : read_cases(*text)) {
    SCOPED_TRACE(golden.title);
    const Result<Program> before = parse_program(golden.before);
    ASSERT_TRUE(before.ok()) << before.status().message();
    const Result<Program> after = run_pass(pass, *before);
    ASSERT_TRUE(after.ok()) << after.status().message();
    EXPECT_EQ(testing::difference(*before, *after, 1), "");
    for (const Program& fewer : testing::without_one_barrier(*after))
      EXPECT_FALSE(pass.check == nullptr || pass.check(fewer).ok()) << print(fewer);
    made.push_back({golden.title, print(*before), print(*after)});
    if (made.back().after == made.back().before) made.back().after.clear();
    changed += made.back().after.empty() ? 0 : 1;
    if (!update_goldens) {
      EXPECT_EQ(made.back().after, golden.after);
    }
  }
  EXPECT_GT(changed, 0) << "no golden of " << pass.name << " changes a program";
  if (update_goldens) {
    ASSERT_TRUE(write_file_atomic(path, to_text(made)).ok());
  } else {
    EXPECT_EQ(to_text(made), *text) << "programs are written as they print";
  }
}

INSTANTIATE_TEST_SUITE_P(passes, Goldens, ::testing::ValuesIn(all_passes()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(goldens, are_of_passes_only) {
  std::set<std::string> files, passes;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    files.insert(entry.path().filename());
  for (const Pass& pass : all_passes()) passes.insert(std::string(pass.name) + ".txt");
  EXPECT_EQ(files, passes);
}

}  // namespace
}  // namespace hone::ir

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  hone::ir::update_goldens = argc > 1 && std::string_view(argv[1]) == "--update-goldens";
  return RUN_ALL_TESTS();
}
