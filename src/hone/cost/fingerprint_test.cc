#include "hone/cost/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/cost/fingerprint_queries.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::cost {
namespace {

std::vector<std::string> all_parts() {
  std::vector<std::string> inputs;
  for (const InputShape& shape : input_shapes()) inputs.push_back(shape.name);
  std::vector<std::string> parts = fingerprint_parts(inputs);
  for (const FeatureSet set : {FeatureSet::kStatements, FeatureSet::kGpu}) {
    for (const std::string& part : fingerprint_parts(set)) parts.push_back(part);
  }
  return parts;
}

// The text with its first number times `factor`.
std::string scaled(const std::string& text, double factor) {
  const size_t end = text.find(' ');
  return fmt::format("{:.12g}{}", factor * std::stod(text.substr(0, end)), text.substr(end));
}

TEST(fingerprint, of_this_program_is_accepted) {
  EXPECT_EQ(all_parts().size(), kNumInputs + 1);  // without "head", with "gbdt" and "gpu"
  for (const std::string& part : all_parts()) {
    const Status status = check_fingerprint(part, fingerprint(part), "a.model");
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(check_fingerprint(part, scaled(fingerprint(part), 1 + 1e-7), "a.model").ok());
  }
}

TEST(fingerprint, that_differs_is_refused_by_name) {
  for (const std::string& part : all_parts()) {
    const std::string message =
        check_fingerprint(part, scaled(fingerprint(part), 1.001), "a.model").message();
    EXPECT_TRUE(message.starts_with(
        "a.model: trained with other features or another analytic "
        "measure than this program has (" +
        part + " of matmul on " + (part == "gpu" ? "cuda" : "avx512") + ": found "))
        << message;
  }
}

TEST(fingerprint, that_is_damaged_is_refused) {
  const std::string good = fingerprint("measure");
  for (const std::string& text :
       {std::string(), std::string("x"), good + " ", good + " 1", good.substr(0, good.rfind(' ')),
        "nan" + good.substr(good.find(' ')), "inf" + good.substr(good.find(' '))}) {
    EXPECT_EQ(
        check_fingerprint("measure", text, "a.model").message(),
        fmt::format("a.model: its fingerprint of measure is '{}', expected 12 numbers", text));
  }
}

TEST(fingerprint, of_a_net_has_what_it_reads) {
  EXPECT_EQ(fingerprint_parts({"statements", "head", "mask"}),
            (std::vector<std::string>{"analytic", "statements", "mask"}));
  EXPECT_EQ(fingerprint_parts({"measure", "analytic"}),
            (std::vector<std::string>{"analytic", "measure"}));
}

// A feature that is 0 for each of the schedules could change undetected.
TEST(fingerprint, looks_at_most_features) {
  for (const FeatureSet set : kTreeFeatures) {
    const std::vector<std::string>& names = candidate_feature_names(set);
    std::vector<bool> seen(names.size());
    const bool gpu = set == FeatureSet::kGpu;
    for (const auto& [name, query] : gpu ? gpu_fingerprint_queries() : fingerprint_queries()) {
      const std::vector<float> row = candidate_features(query, set).row;
      for (size_t i = 0; i < row.size(); ++i) seen[i] = seen[i] || row[i] != 0;
    }
    const auto count = static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
    std::string missing;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!seen[i]) missing += " " + names[i];
    }
    EXPECT_LE(names.size() - count, gpu                              ? 58U
                                    : set == FeatureSet::kStatements ? 65U
                                                                     : 39U)
        << "not seen:" << missing;
  }
}

}  // namespace
}  // namespace hone::cost
