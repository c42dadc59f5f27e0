// backend/gpu/golden_programs_testing.h - the programs in goldens of passes, and kernels that are
// written by hand, which tests of back ends compile.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "hone/base/file.h"
#include "hone/ir/parser.h"
#include "hone/ir/pass_testing.h"
#include "hone/ir/passes/pipeline.h"

namespace hone::backend::gpu::testing {

struct GoldenProgram {
  std::string origin;  // the file, and the number of the program there
  bool barriers;       // the program is one that insert_barriers has made
  ir::Program program;
};

// Returns the programs before and after each pass. A file has lines that begin with "==" or "--"
// between programs (ir/passes/golden_test.cc).
inline std::vector<GoldenProgram> golden_programs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_PASS_GOLDENS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<GoldenProgram> programs;
  for (const std::filesystem::path& file : files) {
    const Result<std::string> text = read_file(file);
    EXPECT_TRUE(text.ok()) << file;
    std::string program, rest = text.value() + "== end\n";
    int number = 0;
    bool after = false;
    while (!rest.empty()) {
      const std::string line = rest.substr(0, rest.find('\n') + 1);
      rest.erase(0, line.size());
      if (!line.starts_with("== ") && !line.starts_with("-- ")) {
        program += line;
        continue;
      }
      if (!program.empty()) {
        const Result<ir::Program> parsed = ir::parse_program(program);
        EXPECT_TRUE(parsed.ok()) << file << parsed.status().message();
        const bool stays = line.starts_with("-- stays");
        programs.push_back({file.filename().string() + " " + std::to_string(number++),
                            file.stem() == "insert_barriers" && (after || stays), *parsed});
        program.clear();
      }
      after = line.starts_with("-- ");
    }
  }
  return programs;
}

// Returns the text of a program with another type in place of f16.
inline std::string with_type(std::string text, const std::string& type) {
  for (size_t at = text.find("f16"); at != std::string::npos; at = text.find("f16", at + 4))
    text.replace(at, 3, type);
  return text;
}

// Returns a kernel that is written by hand (ir/passes/gpu/sketches), with its barriers. Elements of
// half precision become those of another type.
inline ir::Program sketch(const std::string& name, const std::string& type = "f16") {
  const Result<std::string> text = read_file(HONE_SKETCHES "/" + name + ".txt");
  EXPECT_TRUE(text.ok()) << text.status().message();
  const Result<ir::Program> made =
      ir::run_pipeline(ir::gpu_pipeline(), ir::testing::parsed(with_type(*text, type)));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

}  // namespace hone::backend::gpu::testing
