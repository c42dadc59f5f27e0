#include "record_filter.h"

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/device.h"

#include "option_texts.h"

namespace hone::tool {

void add_record_filter(CLI::App& app, RecordFilterTexts& texts) {
  app.add_option("--task", texts.task, "Only the task with this key")->type_name("KEY");
  app.add_option("--kernel", texts.kernel, "Only kernels of this class, such as conv2d+bias+relu")
      ->type_name("CLASS");
  app.add_option(
         "--device", texts.device,
         "Only trials on this device: its key as 'hone db stat' prints it, or a name such as host")
      ->type_name("KEY");
  app.add_option("--model", texts.model, "Only trials for this model")->type_name("NAME");
  app.add_option("--threads", texts.threads, "Only trials with this number of threads")
      ->type_name("N");
}

Result<TrialFilter> parse_record_filter(const RecordFilterTexts& texts) {
  TrialFilter filter;
  if (!texts.task.empty()) {
    const Result<uint64_t> key = parse_key(texts.task);
    if (!key.ok()) return invalid("--task: {} as 'hone db show' prints it", key.status().message());
    filter.task = *key;
  }
  if (!texts.kernel.empty()) filter.kernel_class = texts.kernel;
  if (!texts.device.empty()) {
    const Result<Device> device = find_device(texts.device);
    filter.device = device.ok() ? device->key : texts.device;
  }
  if (!texts.model.empty()) filter.model = texts.model;
  if (!texts.threads.empty()) {
    HONE_ASSIGN_OR_RETURN(filter.threads, parse_count("--threads", texts.threads, 1, 1024));
  }
  return filter;
}

}  // namespace hone::tool
