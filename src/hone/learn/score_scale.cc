#include "hone/learn/score_scale.h"

#include <algorithm>
#include <cmath>

namespace hone::learn {

Result<double> log_seconds_per_score(const net::Net& model, const net::NetRows& rows,
                                     const std::string& library) {
  HONE_ASSIGN_OR_RETURN(const auto outputs, net::torch_evaluate(model, rows.batch, library));
  size_t place = 0;
  while (model.outputs[place].name != "score") ++place;
  const std::vector<float>& scores = outputs[place];
  double together = 0, square = 0;
  for (size_t g = 0; g + 1 < rows.group_begin.size(); ++g) {
    const auto begin = static_cast<size_t>(rows.group_begin[g]);
    const auto end = static_cast<size_t>(rows.group_begin[g + 1]);
    double score = 0, time = 0;
    for (size_t i = begin; i < end; ++i) score += scores[i], time -= std::log(rows.speed[i]);
    const auto count = static_cast<double>(std::max<size_t>(end - begin, 1));
    for (size_t i = begin; i < end; ++i) {
      const double less = score / count - scores[i];
      together += less * (-std::log(rows.speed[i]) - time / count);
      square += less * less;
    }
  }
  return std::max(square > 0 ? together / square : 0, kLeastScale);
}

}  // namespace hone::learn
