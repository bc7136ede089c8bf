/*
 * forward_tls.c - TLS between forwarders (T1 to T3: forward_tls.h).
 *
 * The thread of a forwarder has all signals blocked: a write to a connection that is gone is an
 * error, and no SIGPIPE.
 */
#include "os/forward/forward_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "os/forward/forward_parts.h"
#include "os/library.h"

#define WHY_SIZE 192

#define SSL_FUNCTIONS(X)                  \
    X(TLS_method)                         \
    X(SSL_CTX_new)                        \
    X(SSL_CTX_free)                       \
    X(SSL_CTX_ctrl)                       \
    X(SSL_CTX_set_options)                \
    X(SSL_CTX_set_num_tickets)            \
    X(SSL_CTX_set_verify)                 \
    X(SSL_CTX_set_default_passwd_cb)      \
    X(SSL_CTX_use_certificate_chain_file) \
    X(SSL_CTX_use_PrivateKey_file)        \
    X(SSL_CTX_check_private_key)          \
    X(SSL_CTX_load_verify_file)           \
    X(SSL_CTX_get0_certificate)           \
    X(SSL_new)                            \
    X(SSL_free)                           \
    X(SSL_set_fd)                         \
    X(SSL_get0_param)                     \
    X(SSL_set_accept_state)               \
    X(SSL_set_connect_state)              \
    X(SSL_do_handshake)                   \
    X(SSL_get_error)                      \
    X(SSL_get_verify_result)              \
    X(SSL_read)                           \
    X(SSL_write)                          \
    X(SSL_shutdown)
#define CRYPTO_FUNCTIONS(X)            \
    X(X509_VERIFY_PARAM_set1_host)     \
    X(X509_VERIFY_PARAM_set1_ip)       \
    X(X509_VERIFY_PARAM_set_hostflags) \
    X(X509_verify_cert_error_string)   \
    X(X509_get0_notAfter)              \
    X(X509_cmp_current_time)           \
    X(ERR_clear_error)                 \
    X(ERR_peek_error)                  \
    X(ERR_reason_error_string)

#define POINTER(name) __typeof__(name) *name;
typedef struct functions {
    SSL_FUNCTIONS(POINTER)
    CRYPTO_FUNCTIONS(POINTER)
} functions;
#undef POINTER

struct cx_forward_tls {
    functions f;
    SSL_CTX *context;
    char name[256]; /* "" = addresses */
};

struct cx_forward_session {
    const cx_forward_tls *tls;
    SSL *ssl;
    char address[CX_IP_TEXT_SIZE];
    char why[WHY_SIZE];
};

/* --- opening ---------------------------------------------------------------------------------- */

/* Both stay until the process ends: libpq and others may use them, too. */
static cx_status load_functions(functions *out, cx_err *err)
{
    cx_library *library;
    CX_TRY(cx_library_load("libssl.so.3", &library, err));
#define FIND(name) CX_TRY(cx_library_symbol(library, #name, &out->name, err));
    SSL_FUNCTIONS(FIND)
    CX_TRY(cx_library_load("libcrypto.so.3", &library, err));
    CRYPTO_FUNCTIONS(FIND)
#undef FIND
    return CX_SUCCESS;
}

/* A key with a passphrase is refused: no one is there to be asked. */
static int no_passphrase(char *buf, int size, int writes, void *arg)
{
    (void)buf, (void)size, (void)writes, (void)arg;
    return -1;
}

static cx_status fail_file(const functions *f, const char *path, const char *what, cx_err *err)
{
    const char *why = f->ERR_reason_error_string(f->ERR_peek_error());
    f->ERR_clear_error();
    return cx_fail(err, CX_E_USAGE, "%s: expected %s in PEM (%s)", path, what,
                   why == NULL ? "it cannot be read" : why);
}

static cx_status read_files(const cx_forward_tls *tls, const cx_forward_tls_options *options,
                            cx_err *err)
{
    const functions *f = &tls->f;
    f->ERR_clear_error();
    if (f->SSL_CTX_use_certificate_chain_file(tls->context, options->cert) != 1)
        return fail_file(f, options->cert, "a certificate", err);
    if (f->SSL_CTX_use_PrivateKey_file(tls->context, options->key, SSL_FILETYPE_PEM) != 1 ||
        f->SSL_CTX_check_private_key(tls->context) != 1)
        return fail_file(f, options->key, "the key of the certificate, without a passphrase,", err);
    if (f->SSL_CTX_load_verify_file(tls->context, options->ca) != 1)
        return fail_file(f, options->ca, "the certificate of a CA", err);
    const X509 *own = f->SSL_CTX_get0_certificate(tls->context);
    if (own == NULL || f->X509_cmp_current_time(f->X509_get0_notAfter(own)) <= 0)
        return cx_fail(err, CX_E_USAGE,
                       "%s: the certificate has expired; every node would refuse "
                       "it",
                       options->cert);
    return CX_SUCCESS;
}

static cx_status set_up(cx_forward_tls *tls, const cx_forward_tls_options *options, cx_err *err)
{
    const functions *f = &tls->f;
    tls->context = f->SSL_CTX_new(f->TLS_method());
    if (tls->context == NULL)
        return cx_fail_nomem(err);
    /* T1 */
    (void)f->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL);
    (void)f->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    (void)f->SSL_CTX_ctrl(tls->context, SSL_CTRL_MODE,
                          SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS,
                          NULL);
    (void)f->SSL_CTX_set_options(tls->context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    (void)f->SSL_CTX_set_num_tickets(tls->context, 0);
    f->SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    f->SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    return read_files(tls, options, err);
}

cx_status cx_forward_tls_open(const cx_forward_tls_options *options, cx_forward_tls **out,
                              cx_err *err)
{
    cx_forward_tls *tls = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *tls);
    if (tls == NULL)
        return cx_fail_nomem(err);
    cx_status status = CX_SUCCESS;
    if (options->name != NULL &&
        (options->name[0] == 0 || strlen(options->name) >= sizeof tls->name))
        status = cx_fail(err, CX_E_USAGE, "expected a DNS name with 1 to %zu characters",
                         sizeof tls->name - 1);
    else if (options->name != NULL)
        (void)snprintf(tls->name, sizeof tls->name, "%s", options->name);
    if (!cx_failed(status) && cx_failed(load_functions(&tls->f, NULL))) {
        memset(&tls->f, 0, sizeof tls->f);
        status = cx_fail(err, CX_E_UNSUPPORTED, "TLS between nodes needs OpenSSL's libssl: %s",
                         cx_library_advice("install the package libssl3"));
    }
    if (!cx_failed(status))
        status = set_up(tls, options, err);
    if (cx_failed(status))
        cx_forward_tls_close(tls);
    else
        *out = tls;
    return status;
}

void cx_forward_tls_close(cx_forward_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->context != NULL)
        tls->f.SSL_CTX_free(tls->context);
    cx_alloc_free(cx_alloc_default(), tls, sizeof *tls);
}

/* --- a connection ----------------------------------------------------------------------------- */

/* T2 */
static bool expect_peer(const cx_forward_session *s, const cx_ip *ip)
{
    const functions *f = &s->tls->f;
    X509_VERIFY_PARAM *param = f->SSL_get0_param(s->ssl);
    f->X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (s->tls->name[0] != 0)
        return f->X509_VERIFY_PARAM_set1_host(param, s->tls->name, 0) == 1;
    return f->X509_VERIFY_PARAM_set1_ip(param, ip->bytes, ip->is_v6 ? 16 : 4) == 1;
}

cx_forward_session *cx_forward_session_open(const cx_forward_tls *tls, cx_socket socket,
                                            bool accepts, const cx_ip *peer)
{
    const functions *f = &tls->f;
    cx_forward_session *s = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->tls = tls;
    cx_ip_write(peer, s->address);
    s->ssl = f->SSL_new(tls->context);
    if (s->ssl == NULL || f->SSL_set_fd(s->ssl, socket) != 1 || !expect_peer(s, peer)) {
        cx_forward_session_close(s);
        return NULL;
    }
    if (accepts)
        f->SSL_set_accept_state(s->ssl);
    else
        f->SSL_set_connect_state(s->ssl);
    return s;
}

void cx_forward_session_close(cx_forward_session *s)
{
    if (s == NULL)
        return;
    if (s->ssl != NULL)
        s->tls->f.SSL_free(s->ssl);
    cx_alloc_free(cx_alloc_default(), s, sizeof *s);
}

const char *cx_forward_session_address(const cx_forward_session *s)
{
    return s->address;
}

const char *cx_forward_session_why(const cx_forward_session *s)
{
    return s->why;
}

static void note_certificate(cx_forward_session *s, long verdict)
{
    const char *words = NULL;
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED: words = "its certificate has expired"; break;
    case X509_V_ERR_CERT_NOT_YET_VALID: words = "its certificate is not valid yet"; break;
    case X509_V_ERR_INVALID_PURPOSE:
        words = "its certificate is not for this side of TLS (extended key usage: expected "
                "serverAuth and clientAuth)";
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        words = "its certificate is not of the CA of this node";
        break;
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        (void)snprintf(s->why, sizeof s->why, "its certificate does not name the address %s",
                       s->address);
        return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
        (void)snprintf(s->why, sizeof s->why, "its certificate does not have the name %.100s",
                       s->tls->name);
        return;
    default: words = s->tls->f.X509_verify_cert_error_string(verdict); break;
    }
    (void)snprintf(s->why, sizeof s->why, "%s", words);
}

static void note_why(cx_forward_session *s)
{
    const functions *f = &s->tls->f;
    long verdict = f->SSL_get_verify_result(s->ssl);
    unsigned long code = f->ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    const char *words = f->ERR_reason_error_string(code);
    f->ERR_clear_error();
    if (verdict != X509_V_OK)
        note_certificate(s, verdict);
    else if (code == 0)
        (void)snprintf(s->why, sizeof s->why, "it closed the connection");
    else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        (void)snprintf(s->why, sizeof s->why, "it has shown no certificate");
    else if (reason > SSL_AD_REASON_OFFSET)
        (void)snprintf(s->why, sizeof s->why, "it refuses this node (%s)",
                       words == NULL ? "" : words);
    else
        (void)snprintf(s->why, sizeof s->why, "it does not speak TLS as a node does (%s)",
                       words == NULL ? "" : words);
}

static cx_socket_result result_of(cx_forward_session *s, int answer, unsigned *out_wanted)
{
    const functions *f = &s->tls->f;
    int what = f->SSL_get_error(s->ssl, answer);
    *out_wanted = what == SSL_ERROR_WANT_WRITE ? CX_POLL_WRITE : CX_POLL_READ;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
        return CX_SOCKET_WAITS;
    if (what != SSL_ERROR_ZERO_RETURN)
        note_why(s);
    return CX_SOCKET_ENDED;
}

cx_socket_result cx_forward_session_shake(cx_forward_session *s, unsigned *out_wanted)
{
    s->tls->f.ERR_clear_error();
    int answer = s->tls->f.SSL_do_handshake(s->ssl);
    return answer == 1 ? CX_SOCKET_DONE : result_of(s, answer, out_wanted);
}

cx_socket_result cx_forward_session_receive(cx_forward_session *s, void *data, size_t size,
                                            size_t *out_size)
{
    unsigned ignored;
    s->tls->f.ERR_clear_error();
    int answer = s->tls->f.SSL_read(s->ssl, data, (int)size);
    if (answer <= 0)
        return result_of(s, answer, &ignored);
    *out_size = (size_t)answer;
    return CX_SOCKET_DONE;
}

cx_socket_result cx_forward_session_send(cx_forward_session *s, const void *data, size_t size,
                                         size_t *out_size)
{
    unsigned ignored;
    s->tls->f.ERR_clear_error();
    int answer = s->tls->f.SSL_write(s->ssl, data, (int)size);
    if (answer <= 0)
        return result_of(s, answer, &ignored);
    *out_size = (size_t)answer;
    return CX_SOCKET_DONE;
}

void cx_forward_session_end_output(cx_forward_session *s)
{
    s->tls->f.ERR_clear_error();
    (void)s->tls->f.SSL_shutdown(s->ssl);
}
