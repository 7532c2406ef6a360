// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap's log through ONNX Runtime's logger.
//
// Locking: none. `log_host` is set before gcap has the sink, which any thread calls; ONNX Runtime's logger locks.

#include "ort/log.h"

#include "gcap/log.h"

static const gcap_ort_host_t* log_host;  // set before the sink is

static gcap_ort_logging_level_t level_of(gcap_log_level_t level) {
  switch (level) {
    case GCAP_LOG_DEBUG: return GCAP_ORT_LOG_VERBOSE;
    case GCAP_LOG_INFO: return GCAP_ORT_LOG_INFO;
    case GCAP_LOG_WARNING: return GCAP_ORT_LOG_WARNING;
    default: return GCAP_ORT_LOG_ERROR;
  }
}

static void sink(void* logger, gcap_log_level_t level, const char* message) {
  gcap_ort_status_t* status =
      log_host->api->Logger_LogMessage(logger, level_of(level), message, __FILE__, __LINE__, "gcap");
  if (status != NULL) log_host->api->ReleaseStatus(status);  // there is nowhere to say so
}

// The runtime filters again; a level here spares gcap the texts.
static gcap_log_level_t least_level(const gcap_ort_host_t* host, const gcap_ort_logger_t* logger) {
  gcap_ort_logging_level_t level = GCAP_ORT_LOG_WARNING;
  gcap_ort_status_t* status = host->api->Logger_GetLoggingSeverityLevel(logger, &level);
  if (status != NULL) host->api->ReleaseStatus(status);
  return level >= GCAP_ORT_LOG_ERROR ? GCAP_LOG_ERROR : (gcap_log_level_t)level;
}

void gcap_ort_log_begin(const gcap_ort_host_t* host, const gcap_ort_logger_t* logger) {
  log_host = host;
  gcap_log_set_sink(sink, (void*)logger, least_level(host, logger));
}

void gcap_ort_log_end(void) { gcap_log_set_sink(NULL, NULL, GCAP_LOG_WARNING); }
