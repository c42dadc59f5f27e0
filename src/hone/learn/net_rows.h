// learn/net_rows.h - measured schedules as training data of a net.
#pragma once

#include <atomic>

#include "hone/cost/net/train.h"
#include "hone/learn/dataset.h"
#include "hone/target/target.h"

namespace hone::learn {

namespace net = cost::net;

// Options for the rows of one device's tasks for `model`, with the scores of cost/bound_scores.h.
// Rows are in the order of the data set; `threads` threads compute them. `heads` are as those of
// InputWriter.
struct RowOptions {
  int threads = 1;
  std::vector<std::string> heads = {};
  const std::atomic<bool>* cancel = nullptr;
};
[[nodiscard]] Result<net::NetRows> make_rows(const Dataset& dataset, const target::Target& target,
                                             const net::Net& model, const RowOptions& options);

// Adds the tasks of `more`, such as those of another device.
void append(net::NetRows& rows, const net::NetRows& more);

// Splits off about a `share` of the tasks, chosen by their keys, so that all threads of a task stay
// together.
struct Parts {
  Dataset train, validation;
};
[[nodiscard]] Parts split_tasks(const Dataset& dataset, double share);
// Splits off the tasks that one of the networks has, for validation.
[[nodiscard]] Parts split_models(const Dataset& dataset, const std::set<std::string>& models);

}  // namespace hone::learn
