#include "hone/learn/net_rows.h"

#include <algorithm>

#include "hone/base/cancel.h"
#include "hone/base/thread_pool.h"
#include "hone/cost/analytic_model.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/learn/task_list.h"

namespace hone::learn {
namespace {

// Where the rows of a task go: the place in NetBatch::inputs of each Input, or none.
class TaskWriter {
 public:
  TaskWriter(const target::Target& target, net::NetRows& rows, const net::Net& model,
             const std::vector<std::string>& heads)
      : target_(target), rows_(rows), heads_(heads) {
    places_.fill(-1);
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const std::optional<cost::Input> input = cost::find_input(model.inputs[i].name);
      HONE_ASSERT(input.has_value(), "a net that reads what no candidate has");
      wanted_.set(static_cast<size_t>(*input));
      places_[static_cast<size_t>(*input)] = static_cast<int>(i);
      sizes_[static_cast<size_t>(*input)] = net::element_count(model.inputs[i].dims);
    }
  }

  [[nodiscard]] Status write(const TaskTrials& task, int64_t begin) const {
    cost::InputWriter writer(wanted_, heads_);
    HONE_ASSIGN_OR_RETURN(const double usual, default_seconds(task));
    double best = INFINITY;
    for (const MeasuredSteps& trial : task.trials) best = std::min(best, trial.seconds);
    for (size_t i = 0; i < task.trials.size(); ++i) {
      const MeasuredSteps& trial = task.trials[i];
      HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                            space::make_candidate(*task.dag, trial.steps));
      const auto row = static_cast<size_t>(begin) + i;
      const cost::Query query{&candidate, &target_, task.threads, task.key};
      std::array<float*, cost::kNumInputs> places{};
      for (size_t k = 0; k < cost::kNumInputs; ++k) {
        if (places_[k] >= 0)
          places[k] =
              &rows_.batch
                   .inputs[static_cast<size_t>(places_[k])][row * static_cast<size_t>(sizes_[k])];
      }
      HONE_RETURN_IF_ERROR(writer.write(query, places));
      const trial::BoundScores bounds = cost::bound_scores(query, trial.counted);
      rows_.speed[row] = static_cast<float>(best / trial.seconds);
      rows_.log_time[row] = net::log_time(trial.seconds, usual);
      rows_.memory_bound[row] = static_cast<float>(bounds.memory);
      rows_.core_bound[row] = static_cast<float>(bounds.core);
    }
    return ok_status();
  }

 private:
  // Returns the analytic model's time of the default schedule; 0 if there is none.
  [[nodiscard]] Result<double> default_seconds(const TaskTrials& task) const {
    const Result<space::Candidate> candidate = space::default_candidate(*task.dag, target_);
    if (!candidate.ok()) return 0.0;
    const cost::Query query{&*candidate, &target_, task.threads, task.key};
    HONE_ASSIGN_OR_RETURN(const auto seconds, cost::make_analytic_model()->predict({&query, 1}));
    return seconds[0];
  }

  const target::Target& target_;
  net::NetRows& rows_;
  const std::vector<std::string>& heads_;
  cost::InputSet wanted_;
  std::array<int, cost::kNumInputs> places_{};
  std::array<int64_t, cost::kNumInputs> sizes_{};
};

}  // namespace

Result<net::NetRows> make_rows(const Dataset& dataset, const target::Target& target,
                               const net::Net& model, const RowOptions& options) {
  net::NetRows rows = net::no_rows(model);
  for (const TaskTrials& task : dataset.tasks)
    rows.group_begin.push_back(rows.group_begin.back() + std::ssize(task.trials));
  rows.batch.rows = rows.group_begin.back();
  const auto count = static_cast<size_t>(rows.batch.rows);
  for (size_t i = 0; i < model.inputs.size(); ++i)
    rows.batch.inputs[i].resize(count *
                                static_cast<size_t>(net::element_count(model.inputs[i].dims)));
  for (std::vector<float>* labels :
       {&rows.speed, &rows.log_time, &rows.memory_bound, &rows.core_bound})
    labels->resize(count);
  const TaskWriter writer(target, rows, model, options.heads);
  std::vector<Status> statuses(dataset.tasks.size());
  ThreadPool pool(options.threads);
  pool.parallel_for(std::ssize(dataset.tasks), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    statuses[place] = check_cancelled(options.cancel);
    if (statuses[place].ok())
      statuses[place] = writer.write(dataset.tasks[place], rows.group_begin[place]);
  });
  for (const Status& status : statuses) HONE_RETURN_IF_ERROR(status);
  return rows;
}

void append(net::NetRows& rows, const net::NetRows& more) {
  const auto add = [](std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (size_t i = 1; i < more.group_begin.size(); ++i)
    rows.group_begin.push_back(rows.batch.rows + more.group_begin[i]);
  rows.batch.rows += more.batch.rows;
  for (size_t i = 0; i < more.batch.inputs.size(); ++i)
    add(rows.batch.inputs[i], more.batch.inputs[i]);
  add(rows.speed, more.speed);
  add(rows.log_time, more.log_time);
  add(rows.memory_bound, more.memory_bound);
  add(rows.core_bound, more.core_bound);
}

Parts split_tasks(const Dataset& dataset, double share) {
  Parts parts;
  for (const TaskTrials& task : dataset.tasks) {
    const double place = static_cast<double>(hash_mix(task.key) >> 11) * 0x1.0p-53;
    (place < share ? parts.validation : parts.train).tasks.push_back(task);
  }
  return parts;
}

Parts split_models(const Dataset& dataset, const std::set<std::string>& models) {
  const std::set<uint64_t> theirs = dataset.keys_of(models);
  return {tasks_except(dataset, theirs), tasks_among(dataset, theirs)};
}

}  // namespace hone::learn
