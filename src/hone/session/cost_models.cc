#include "hone/session/cost_models.h"

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/cost/registry.h"
#include "hone/session/compile_graph.h"
#include "hone/session/static_model.h"

namespace hone {

NetCompiler net_compiler() {
  return [](graph::Graph net, const std::string& library) -> Status {
    CompileOptions options;
    options.records.use_db = false;
    options.library.sync = false;
    options.library.prefix = kNetPrefix;
    options.target.threads = 1;
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options));
    const double start = real_clock().now_seconds();
    return compile_graph(*session, std::move(net), library, options, start).status();
  };
}

Result<std::unique_ptr<cost::CostModel>> make_cost_model(const CostOptions& options) {
  HONE_ASSIGN_OR_RETURN(cost::ModelWithCard made, make_cost_model_with_card(options));
  return std::move(made.model);
}

Result<cost::ModelWithCard> make_cost_model_with_card(const CostOptions& options) {
  const bool net = options.adapt != "none" || options.cost.ends_with(".onnx");
  if (net || !cost::is_model_file(options.cost))
    return make_cost_model_with_card(options, net_compiler());
  // The file may be a pipe, so it is read once.
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(options.cost));
  if (!cost::is_static_score(text))
    return cost::make_trained_model(text, options.cost, options.use);
  HONE_ASSIGN_OR_RETURN(cost::StaticScore score, cost::parse_static(text, options.cost));
  std::map<std::string, std::string> card = score.card;
  card["instructions"] = score.instruction_set;
  return cost::ModelWithCard{make_static_model(std::move(score), options.cost), std::move(card)};
}

}  // namespace hone
