// Events and graphs on devices of CUDA.
#include "hone/runtime/device/cuda_device.h"

namespace hone::runtime::cuda {

bool record(Device& device, DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  if (event.handle == 0) {
    Event made = nullptr;
    if (!succeeded(device, cuda.api.create_event(&made, 0), "making an event")) return false;
    event.handle = reinterpret_cast<uint64_t>(made);
  }
  return succeeded(device,
                   cuda.api.record_event(reinterpret_cast<Event>(event.handle), cuda.stream),
                   "recording an event");
}

bool elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to, double& seconds) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  const Event both[] = {reinterpret_cast<Event>(from.handle), reinterpret_cast<Event>(to.handle)};
  for (const Event event : both)
    if (!succeeded(device, cuda.api.wait_event(event), "running kernels")) return false;
  float milliseconds = 0;
  if (!succeeded(device, cuda.api.elapsed(&milliseconds, both[0], both[1]),
                 "reading the time of an event"))
    return false;
  seconds = static_cast<double>(milliseconds) * 1e-3;
  return true;
}

bool wait(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.wait_event(reinterpret_cast<Event>(event.handle)),
                   "running kernels");
}

Progress poll(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  const Result code = cuda.api.query_event(reinterpret_cast<Event>(event.handle));
  if (code == kNotReady) return Progress::kUnderWay;
  return succeeded(device, code, "running kernels") ? Progress::kDone : Progress::kFailed;
}

bool wait_in_stream(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(
      device, cuda.api.stream_wait_event(cuda.stream, reinterpret_cast<Event>(event.handle), 0),
      "waiting for another stream");
}

void release_event(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.destroy_event(reinterpret_cast<Event>(event.handle));
}

bool begin_graph(Device& device) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.begin_capture(cuda.stream, kCaptureThreadLocal),
                   "recording a graph");
}

bool end_graph(Device& device, DeviceGraph& out) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  Graph graph = nullptr;
  if (!succeeded(device, cuda.api.end_capture(cuda.stream, &graph), "recording a graph"))
    return false;
  GraphExec made = nullptr;
  const Result code = cuda.api.instantiate(&made, graph, 0);
  cuda.api.destroy_graph(graph);
  if (!succeeded(device, code, "preparing a graph")) return false;
  out.handle = made;
  return true;
}

bool launch_graph(Device& device, const DeviceGraph& graph) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.launch_graph(static_cast<GraphExec>(graph.handle), cuda.stream),
                   "launching a graph");
}

void release_graph(Device& device, const DeviceGraph& graph) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.destroy_graph_exec(static_cast<GraphExec>(graph.handle));
}

}  // namespace hone::runtime::cuda
