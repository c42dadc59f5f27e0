#include "output_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hone::tool {
namespace {

using Names = std::vector<std::string>;

TEST(output_files, are_named_after_the_outputs) {
  EXPECT_EQ(
      output_files({"y", "/fc/Gemm_0", "a\\b", "..", ".", "y.npy", "-o"}),
      (Names{"y.npy", "_fc_Gemm_0.npy", "a\\b.npy", "...npy", "..npy", "y.npy.npy", "-o.npy"}));
}

TEST(output_files, of_names_that_would_share_one_lie_in_folders) {
  EXPECT_EQ(output_files({"p/q", "p_q", "p\\q", "p//q"}),
            (Names{"p/q.npy", "p_q.npy", "p\\q.npy", "p__q.npy"}));
  EXPECT_EQ(output_files({"a/b_c", "a_b/c", "a/b/c"}),
            (Names{"a/b_c.npy", "a_b/c.npy", "a/b/c.npy"}));
  // A name is the same whatever stands before it.
  EXPECT_EQ(output_files({"p_q", "p/q"}), (Names{"p_q.npy", "p/q.npy"}));
}

TEST(output_files, stay_below_the_folder) {
  EXPECT_EQ(output_files({"/p", "_p", "../p", ".._p", "a/./b", "a_._b", "/a%", "_a%"}),
            (Names{"%2Fp.npy", "_p.npy", "..%2Fp.npy", ".._p.npy", "a%2F.%2Fb.npy", "a_._b.npy",
                   "%2Fa%25.npy", "_a%.npy"}));
}

TEST(output_files, are_no_folders_of_others) {
  // The folder y.npy would be the file of y.
  EXPECT_EQ(output_files({"y", "y.npy/z", "y.npy_z"}),
            (Names{"y.npy", "y.npy%2Fz.npy", "y.npy_z.npy"}));
}

TEST(output_files, are_as_short_as_a_file_system_asks) {
  const std::string longest(251, 'x'), longer(252, 'x'), other = longer + "y";
  const std::string omega = "\xCF\x89";
  std::string letters = "x";
  while (letters.size() < 300) letters += omega;
  const Names names = {longest, longer, other, "a/" + longest, letters};
  const Names files = output_files(names);
  EXPECT_EQ(files[0], longest + ".npy");
  EXPECT_EQ(files[3], "a/" + longest + ".npy");
  for (const size_t i : {1, 2, 4}) {
    EXPECT_LE(files[i].size(), 255U);
    EXPECT_TRUE(files[i].starts_with(names[i].substr(0, 199)));
    EXPECT_TRUE(files[i].ends_with(".npy"));
    EXPECT_EQ(output_files({names[i]})[0], files[i]);
  }
  EXPECT_EQ(files[4][199], '~') << "a character is cut in two";
  EXPECT_EQ(std::set<std::string>(files.begin(), files.end()).size(), names.size());
}

// Names that look like what other names are made of.
TEST(output_files, are_always_different) {
  Names names;
  for (const std::string a : {"p", "p_", "p%2F", "", "..", "p.npy"}) {
    for (const std::string b : {"/", "_", "%2F", "//", "%25"}) {
      for (const std::string c : {"q", "", "_q", ".npy", "/q"}) names.push_back(a + b + c);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const Names files = output_files(names);
  std::set<std::string> different(files.begin(), files.end()), folders;
  EXPECT_EQ(different.size(), names.size());
  for (const std::string& file : files) {
    EXPECT_FALSE(file.empty());
    for (size_t at = file.find('/'); at != std::string::npos; at = file.find('/', at + 1))
      EXPECT_FALSE(different.contains(file.substr(0, at))) << file;
  }
}

}  // namespace
}  // namespace hone::tool
