/* The header stands alone and may be included twice; also compiled as C++. */
#include "gemini.h"
#include "gemini_version.h"

#if !GEMINI_VERSION_AT_LEAST(0, 1, 0)
#error "GEMINI_VERSION_AT_LEAST does not hold"
#endif

int main(void) {
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  gemini_param_info_t param = GEMINI_PARAM_INFO_INIT;
  gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
  return info.struct_size > 0 && param.struct_size > 0 && topology.struct_size > 0 ? 0 : 1;
}
