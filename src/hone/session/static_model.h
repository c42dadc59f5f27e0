// session/static_model.h - the family `static`: predicts seconds by a linear score of a candidate's
// machine code (cost/static_score.h), which it compiles and does not run. It knows more than models
// that read decisions, and takes about a tenth of a second a candidate, so it is for few of them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hone/backend/backend.h"
#include "hone/cost/cost_model.h"
#include "hone/cost/static_score.h"
#include "hone/search/code_filter.h"

namespace hone {

// Returns the features of a candidate for a CPU, in the order of cost::static_feature_names(). It
// is an error if the candidate cannot be compiled or its code cannot be counted.
[[nodiscard]] Result<std::vector<double>> static_features(const cost::Query& query,
                                                          const backend::CountOptions& how = {});
// Returns those of a candidate that is compiled already.
[[nodiscard]] Result<std::vector<double>> static_features(const cost::Query& query,
                                                          const ir::Program& program,
                                                          const backend::Executable& code,
                                                          const backend::CountOptions& how = {});

inline constexpr std::string_view kStaticModel = "static";  // the name of such models

// Makes the model of a score. Its predictions for another instruction set are an error, those of
// candidates that cannot be compiled are infinite. `name` is the file that the score is from.
[[nodiscard]] std::unique_ptr<cost::CostModel> make_static_model(cost::StaticScore score,
                                                                 std::string name);

// Makes the filter that SearchOptions::filter describes, which must not be empty, by the score in
// its file. A file that is no score, or one of another instruction set, is an error.
[[nodiscard]] Result<std::unique_ptr<search::CodeFilter>> make_code_filter(
    const std::string& text, const target::Target& target);

}  // namespace hone
