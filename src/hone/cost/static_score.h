// cost/static_score.h - a linear score of what is known of a kernel's machine code without running
// it: seconds = sum of a_i f_i / clock, with coefficients a_i >= 0 of one instruction set (Tuna,
// Wang et al. 2021, equation 2). session/static_model.h computes the f_i.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/target/cpu.h"

namespace hone::cost {

// Changes when one of the features means something else; files of another version are refused.
inline constexpr int kStaticFeatureVersion = 2;

// Names of the features, in the order of their values: executed instructions by class, cycles by
// the list scheduler and by LLVM MCA, cycles of data movement by level, first with each stage on
// its own, then with what stages share counted once, and launches. All are those of the busiest
// thread.
[[nodiscard]] std::span<const std::string_view> static_feature_names();

struct StaticScore {
  std::string instruction_set;              // as instruction_set() returns it
  std::vector<double> coefficients;         // cycles for one of each feature; not negative
  std::map<std::string, std::string> card;  // how it was fitted, for people
  // Returns the seconds on a core of so many GHz.
  [[nodiscard]] double seconds(std::span<const double> features, double ghz) const;
};

// Returns the name of what code for the target consists of, such as "x86_64 with 512 bits":
// coefficients hold for all processors that have it.
[[nodiscard]] std::string instruction_set(const target::Cpu& target);

struct StaticSample {
  std::vector<double> features;
  double seconds;  // measured
  double ghz;
};
// Which groups of features a fit uses, to judge what each is worth; 0: their coefficients are 0.
struct StaticOptions {
  int counts = 1;     // executed instructions by class
  int scheduler = 1;  // cycles by the list scheduler
  int mca = 1;        // cycles by LLVM MCA
  int shared = 1;     // data movement with what stages share counted once
};
// Parses "counts=0,mca=0".
[[nodiscard]] Result<StaticOptions> parse_static_options(std::string_view text);
[[nodiscard]] std::vector<std::string> static_option_help();  // a line for each option

// Fits the coefficients to the smallest sum of squared relative errors.
[[nodiscard]] std::vector<double> fit_static(std::span<const StaticSample> samples,
                                             const StaticOptions& options = {});

// The text of a score's file. A text of another version, feature version or kind is an error that
// names the file.
inline constexpr std::string_view kStaticTitle = "hone static score 1";
[[nodiscard]] std::string format(const StaticScore& score);
[[nodiscard]] Result<StaticScore> parse_static(std::string_view text, std::string_view name);
// Returns whether a text is a static score's, of any version.
[[nodiscard]] bool is_static_score(std::string_view text);

}  // namespace hone::cost
