#include "hone/runtime/device/opencl_api.h"

#include "hone/runtime/device/driver.h"

namespace hone::runtime::opencl {

bool load_api(Api& api, char* message) {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    say_device(message,
               "there is no OpenCL here: cannot load libOpenCL.so.1 (Debian: "
               "apt-get install ocl-icd-libopencl1, and a driver such as "
               "pocl-opencl-icd)");
    return false;
  }
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    if (!find_symbol(library, name, function) && missing == nullptr) missing = name;
  };
  find("clGetPlatformIDs", api.get_platforms);
  find("clGetPlatformInfo", api.platform_info);
  find("clGetDeviceIDs", api.get_devices);
  find("clGetDeviceInfo", api.device_info);
  find("clCreateContext", api.create_context);
  find("clReleaseContext", api.release_context);
  find("clCreateCommandQueue", api.create_queue);
  find("clReleaseCommandQueue", api.release_queue);
  find("clCreateBuffer", api.create_buffer);
  find("clReleaseMemObject", api.release_memory);
  find("clEnqueueWriteBuffer", api.write);
  find("clEnqueueReadBuffer", api.read);
  find("clEnqueueCopyBuffer", api.copy);
  find("clEnqueueFillBuffer", api.fill);
  find("clFinish", api.finish);
  find("clFlush", api.flush);
  find("clCreateProgramWithSource", api.program_of_source);
  find("clCreateProgramWithBinary", api.program_of_binary);
  find("clBuildProgram", api.build);
  find("clGetProgramBuildInfo", api.build_info);
  find("clGetProgramInfo", api.program_info);
  find("clReleaseProgram", api.release_program);
  find("clCreateKernel", api.create_kernel);
  find("clReleaseKernel", api.release_kernel);
  find("clSetKernelArg", api.set_argument);
  find("clGetKernelInfo", api.kernel_info);
  find("clGetKernelWorkGroupInfo", api.kernel_group_info);
  find("clEnqueueNDRangeKernel", api.launch);
  find("clEnqueueMarkerWithWaitList", api.marker);
  find("clWaitForEvents", api.wait);
  find("clGetEventProfilingInfo", api.profiling_info);
  find("clGetEventInfo", api.event_info);
  find("clReleaseEvent", api.release_event);
  if (missing == nullptr) return true;
  say_device(message, "libOpenCL.so.1 is older than OpenCL 1.2: it has no %s", missing);
  return false;
}

const char* error_name(Int code) {
  switch (code) {
    case -1: return "CL_DEVICE_NOT_FOUND";
    case -2: return "CL_DEVICE_NOT_AVAILABLE";
    case -3: return "CL_COMPILER_NOT_AVAILABLE";
    case -4: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case -5: return "CL_OUT_OF_RESOURCES";
    case -6: return "CL_OUT_OF_HOST_MEMORY";
    case -7: return "CL_PROFILING_INFO_NOT_AVAILABLE";
    case -11: return "CL_BUILD_PROGRAM_FAILURE";
    case -14: return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case -30: return "CL_INVALID_VALUE";
    case -33: return "CL_INVALID_DEVICE";
    case -34: return "CL_INVALID_CONTEXT";
    case -36: return "CL_INVALID_COMMAND_QUEUE";
    case -38: return "CL_INVALID_MEM_OBJECT";
    case -42: return "CL_INVALID_BINARY";
    case -43: return "CL_INVALID_BUILD_OPTIONS";
    case -44: return "CL_INVALID_PROGRAM";
    case -45: return "CL_INVALID_PROGRAM_EXECUTABLE";
    case -46: return "CL_INVALID_KERNEL_NAME";
    case -47: return "CL_INVALID_KERNEL_DEFINITION";
    case -48: return "CL_INVALID_KERNEL";
    case -49: return "CL_INVALID_ARG_INDEX";
    case -50: return "CL_INVALID_ARG_VALUE";
    case -51: return "CL_INVALID_ARG_SIZE";
    case -52: return "CL_INVALID_KERNEL_ARGS";
    case -54: return "CL_INVALID_WORK_GROUP_SIZE";
    case -55: return "CL_INVALID_WORK_ITEM_SIZE";
    case -58: return "CL_INVALID_EVENT";
    case -59: return "CL_INVALID_OPERATION";
    case -61: return "CL_INVALID_BUFFER_SIZE";
    case -63: return "CL_INVALID_GLOBAL_WORK_SIZE";
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "error";
  }
}

}  // namespace hone::runtime::opencl
