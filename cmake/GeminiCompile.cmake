# How every target of this project is compiled.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# gemini_compile_settings(target): warnings, sanitizers and the floating point rules.
function(gemini_compile_settings target)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                        C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        POSITION_INDEPENDENT_CODE ON)
  # One fixed sequence of IEEE operations everywhere: no contraction into fma.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -ffp-contract=off)
  if(GEMINI_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(GEMINI_SANITIZE STREQUAL "address")
    # Enums of the C interface come from C, where any int may be passed: the library checks them itself.
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=enum
                                             -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  elseif(GEMINI_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  elseif(GEMINI_SANITIZE)
    message(FATAL_ERROR "GEMINI_SANITIZE=${GEMINI_SANITIZE}: allowed are address, thread and empty")
  endif()
endfunction()
