// cost/embedder.h - cost models that embed candidates, as nets do: the numbers of which the last
// layer makes the score say which candidates the model takes for alike. A search may build on them
// (MetaTune, section 3.3).
#pragma once

#include <span>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

using Embeddings = std::vector<std::vector<float>>;  // one of each candidate, all of one length

class Embedder {
 public:
  virtual ~Embedder() = default;
  // Prepares the model for embed(). It is an error if it has no embedding. Nobody may predict
  // meanwhile.
  [[nodiscard]] virtual Status start_embedding() = 0;
  // Returns the embeddings of candidates. It is an error, with Code::kUnsupported, if the model
  // cannot judge the task.
  [[nodiscard]] virtual Result<Embeddings> embed(std::span<const Query> queries) const = 0;
};

// Call the functions of that name of a model that is an Embedder; an error for any other.
[[nodiscard]] Status start_embedding(CostModel& model);
[[nodiscard]] Result<Embeddings> embeddings_of(const CostModel& model,
                                               std::span<const Query> queries);

}  // namespace hone::cost
