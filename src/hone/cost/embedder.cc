#include "hone/cost/embedder.h"

namespace hone::cost {
namespace {

Status no_embedding(const CostModel& model) {
  return invalid(
      "cost model '{}' has no embedding of schedules, expected FILE.onnx, a net that hone train "
      "wrote",
      model.name());
}

}  // namespace

Status start_embedding(CostModel& model) {
  auto* const embedder = dynamic_cast<Embedder*>(&model);
  return embedder == nullptr ? no_embedding(model) : embedder->start_embedding();
}

Result<Embeddings> embeddings_of(const CostModel& model, std::span<const Query> queries) {
  const auto* const embedder = dynamic_cast<const Embedder*>(&model);
  if (embedder == nullptr) return no_embedding(model);
  return embedder->embed(queries);
}

}  // namespace hone::cost
