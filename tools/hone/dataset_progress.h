// tools/hone/dataset_progress.h - tells on standard error how far the measuring of a data set is.
#pragma once

#include "hone/dataset.h"

namespace hone::tool {

// A line about a model in one size.
void print_variant(const ModelVariant& variant);

// One line that is written anew on a terminal; a line every few seconds elsewhere.
class DatasetProgressDisplay {
 public:
  DatasetProgressDisplay();
  void show(const DatasetProgress& progress);
  void finish() const;

 private:
  bool terminal_;
  double last_;
};

}  // namespace hone::tool
