#include "hone/neural_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include "hone/compiled_net.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/tune.h"

namespace hone {
namespace {

using cost::InputSet;
using cost::kNumInputs;
using cost::Query;

// However sure a net is, a schedule is not so many times faster or slower than the default one.
constexpr double kFarthest = 12;  // as a logarithm

// The library with arrays for one batch: what one thread works with.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(const std::string& library) {
    HONE_ASSIGN_OR_RETURN(codegen::LoadedModel model, load(library, 1));
    auto worker = std::unique_ptr<Worker>(new Worker(std::move(model)));
    HONE_RETURN_IF_ERROR(worker->bind());
    return worker;
  }

  struct Row {
    double score = 0, analytic_seconds = 0;
  };
  // At most kNetBatch queries.
  Result<std::vector<Row>> run(std::span<const Query> queries) {
    std::vector<Row> rows(queries.size());
    for (size_t i = 0; i < queries.size(); ++i) {
      std::array<float*, kNumInputs> places{};
      for (size_t k = 0; k < kNumInputs; ++k) {
        if (!wanted_[k]) continue;
        const int64_t size = cost::input_shapes()[k].size();
        places[k] = values_[k].data() + static_cast<size_t>(size) * i;
      }
      HONE_RETURN_IF_ERROR(writer_->write(queries[i], places));
      rows[i].analytic_seconds = writer_->analytic_seconds();
    }
    HONE_RETURN_IF_ERROR(model_.run(inputs_, outputs_));
    for (size_t i = 0; i < queries.size(); ++i) {
      rows[i].score = scores_[i];
      if (!std::isfinite(rows[i].score))
        return error(Code::kInternal, "a score is {}, expected a finite number", rows[i].score);
    }
    return rows;
  }

 private:
  explicit Worker(codegen::LoadedModel model) : model_(std::move(model)) {}

  Status bind() {
    for (const codegen::ModelTensor& input : model_.inputs()) {
      const std::optional<cost::Input> found = cost::find_input(input.name);
      if (!found) return invalid("the net reads {}, which is not known", input.name);
      const auto k = static_cast<size_t>(*found);
      Shape expected = cost::input_shapes()[k].dims;
      expected.insert(expected.begin(), kNetBatch);
      if (input.dtype != DType::kF32 || input.shape != expected)
        return invalid("the net reads {} of shape {}, expected {}", input.name,
                       to_string(input.shape), to_string(expected));
      wanted_[k] = true;
      values_[k].resize(static_cast<size_t>(num_elements(expected)));
      inputs_.push_back(values_[k].data());
    }
    bool scores = false;
    for (const codegen::ModelTensor& output : model_.outputs()) {
      std::vector<float>& values = others_.emplace_back(num_elements(output.shape));
      if (output.name == "score" && output.shape == Shape{kNetBatch, 1}) {
        scores = true;
        scores_ = values;
      }
      outputs_.push_back(values.data());
    }
    if (!scores)
      return invalid("the net has no output score of shape {}", to_string({kNetBatch, 1}));
    writer_.emplace(wanted_);
    return ok_status();
  }

  codegen::LoadedModel model_;
  InputSet wanted_;
  std::optional<cost::InputWriter> writer_;
  std::vector<float> values_[kNumInputs];
  std::vector<const void*> inputs_;
  std::vector<std::vector<float>> others_;
  std::span<const float> scores_;
  std::vector<void*> outputs_;
};

// A net ranks the schedules of a task. Seconds, which tell tasks apart, come from the analytic
// model: those of the task's default schedule, times what the net says a schedule takes relative to
// that one.
class NeuralModel : public cost::CostModel {
 public:
  NeuralModel(const NetFile& net, CompiledNet compiled, std::unique_ptr<Worker> first)
      : family_(net.family),
        scale_(net.card.log_seconds_per_score),
        compiled_(std::move(compiled)) {
    idle_.push_back(std::move(first));
  }

  [[nodiscard]] std::string_view name() const override { return family_; }

  // May be called by several threads at a time.
  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, take());
    Result<std::vector<double>> seconds = predict_on(*worker, queries);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
    return seconds;
  }

  // Measurements correct it elsewhere, per task (search/correction.h).
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  using TaskKey = std::tuple<uint64_t, int, const target::Target*>;

  static TaskKey key_of(const Query& query) { return {query.task, query.threads, query.target}; }

  Result<std::unique_ptr<Worker>> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return Worker::open(compiled_.path);
  }

  Result<std::vector<double>> predict_on(Worker& worker, std::span<const Query> queries) const {
    std::vector<double> seconds;
    seconds.reserve(queries.size());
    while (!queries.empty()) {
      const std::span<const Query> batch =
          queries.first(std::min(queries.size(), static_cast<size_t>(kNetBatch)));
      HONE_ASSIGN_OR_RETURN(const std::vector<Worker::Row> rows, worker.run(batch));
      Worker::Row anchor;
      for (size_t i = 0; i < batch.size(); ++i) {
        if (i == 0 || key_of(batch[i]) != key_of(batch[i - 1])) {
          HONE_ASSIGN_OR_RETURN(anchor, anchor_of(worker, batch[i], rows[i]));
        }
        const double relative = scale_ * (anchor.score - rows[i].score);
        seconds.push_back(std::max(anchor.analytic_seconds, 1e-12) *
                          std::exp(std::clamp(relative, -kFarthest, kFarthest)));
      }
      queries = queries.subspan(batch.size());
    }
    return seconds;
  }

  // The default schedule of the query's task; `otherwise` if there is none.
  Result<Worker::Row> anchor_of(Worker& worker, const Query& query,
                                const Worker::Row& otherwise) const {
    const TaskKey key = key_of(query);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = anchors_.find(key); known != anchors_.end()) return known->second;
    }
    Worker::Row anchor = otherwise;
    const Result<space::Space> space = space::Space::create(*query.candidate->dag, *query.target);
    if (space.ok()) {
      const Result<space::Candidate> start = space->instantiate(space->default_point());
      if (start.ok()) {
        Query first = query;
        first.candidate = &*start;
        HONE_ASSIGN_OR_RETURN(const std::vector<Worker::Row> rows, worker.run({&first, 1}));
        anchor = rows[0];
      }
    }
    const std::lock_guard lock(mutex_);
    return anchors_.emplace(key, anchor).first->second;
  }

  std::string family_;
  double scale_;
  CompiledNet compiled_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::vector<std::unique_ptr<Worker>> idle_;
  mutable std::map<TaskKey, Worker::Row> anchors_;  // looked up only, never iterated
};

bool is_net_file(std::string_view name) { return name.ends_with(".onnx"); }

// Beside the database, or where it would be by default.
std::string folder_for(const CostOptions& options) {
  if (!options.use_db) return "";
  std::string where = options.db;
  if (where.empty() || db::is_server(where)) {
    const Result<std::string> path = db::store_path("", {});
    if (!path.ok()) return "";
    where = *path;
  }
  const std::filesystem::path folder = std::filesystem::path(where).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

Result<std::unique_ptr<cost::CostModel>> make_cost_model(const CostOptions& options) {
  if (!is_net_file(options.cost)) return cost::make_model(options.cost);
  HONE_ASSIGN_OR_RETURN(const NetFile net, read_net(options.cost));
  HONE_ASSIGN_OR_RETURN(CompiledNet compiled, compile_net(net, options.cost, folder_for(options)));
  Result<std::unique_ptr<Worker>> worker = Worker::open(compiled.path);
  if (!worker.ok()) return invalid("{}: {}", options.cost, worker.status().message());
  return std::unique_ptr<cost::CostModel>(
      std::make_unique<NeuralModel>(net, std::move(compiled), *std::move(worker)));
}

Status check_cost_model(const std::string& cost) {
  return is_net_file(cost) ? read_net(cost).status() : cost::make_model(cost).status();
}

}  // namespace hone
