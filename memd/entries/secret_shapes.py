r"""The table of the shapes of secrets: the prefixes of tokens, and the context of all others.

Three tables. TOKENS have a prefix that their issuer chose. FRAMES are recognized by the text around or in the
middle of them. ASSIGNED are names of services and of secrets to which a random text is assigned. Precision
over
recall: identifiers, public keys and secrets without such a word are left out. Kinds are named as in the rules
of gitleaks and Betterleaks, where these have the shape.

In a shape %a is a letter or digit, %l a small letter or digit, %h a hexadecimal digit, %u a character of
base64 for URLs, %b one of base64, %i a UUID, and %! means that no letter or digit may follow.
"""

# Kind, prefixes, the rest. "<" before a kind: no letter or digit may precede the token, because the prefix is
# short. "~": the rest must look random, because it could consist of words.
TOKENS = r"""
<1password-secret-key        A3-                          [A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}
1password-service-account-token  ops_eyJ                  %b{60,}={0,3}
<adobe-client-secret         p8e-                         %a{32}%!
age-secret-key               AGE-SECRET-KEY-1             [QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}
aikido-token                 AIK_CI_ AIK_SECRET_          %a{20,}
<alibaba-access-key-id       LTAI                         (?=.{0,24}?[0-9])(?=.{0,24}?[a-z])%a{17,21}%!
anthropic-key                sk-ant-                      [a-z]{2,8}[0-9]{2}-%u{16,}
apify-api-token              apify_api_                   %a{34,}
<artifactory-api-key         AKCp                         %a{68,70}%!
<artifactory-reference-token cmVmd                        %a{59}%!
asaas-api-token              $aact_prod_ $aact_hmlg_      %u{20,}
<atlassian-api-token         ATAT                         [A-Za-z0-9_=-]{100,}
<aws-access-key-id           AKIA ASIA ABIA ACCA          [A-Z0-9]{16}%!
<aws-access-key-id           A3T                          [A-Z0-9]{17}%!
<aws-amazon-bedrock-api-key  ABSK                         %b{109,}={0,2}
aws-amazon-bedrock-api-key   bedrock-api-key-           YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9_+/=-]*
bitbucket-data-center-token  BBDC-                        [A-Za-z0-9+/=]{32,}
braintree-access-token       access_token$production$     %l{16}\$%h{32}
<~brave-search-api-key       BSA                          %u{24,40}%!
buildkite-token              bkaa_ bkaj_ bkar_ bkct_ bkpt_ bkpat_ bkps_ bkua_  %u{40,}
canadian-digital-service-notify-api-key  gcntfy-          [a-z0-9_]+-%i-%i
canva-client-secret          cnvca                        %u{51}
cartesia-api-key             sk_car_                      %u{20,}
cerebras-api-key             csk-                         %a{48,}
checkout-secret-key          sk_                          %i
circleci-token               CCIPAT_ CCIPRJ_              %a{22}_%a{40}
<clickhouse-cloud-api-secret-key  4b1d                    %a{38}%!
clickup-personal-api-token   pk_                          [0-9]{8,9}_%a{32}
clojars-api-token            CLOJARS_                     %a{60}
cloudflare-api-key           cfut_ cfat_                  %a{40}%h{8}
<cloudflare-origin-ca-key    v1.0-                        %h{24}-%h{146}
cloudsmith-api-key           csa_                         %h{30}%a{6}
cockroachlabs-cloud-api-key  CCDB1_                       %a{22}_%a{40}
configcat-sdk-key-extended   configcat-sdk-1/             %u{22}/%u{22}
<databricks-api-token        dapi                         %h{32}(?:-\d)?
datastax-astra-application-token  AstraCS:                [A-Za-z0-9:]{20,}
defined-networking-api-token dnkey-                       [A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}
deno-token                   ddp_ ddo_                    %a{36}
devcycle-sdk-key             dvc_client_ dvc_mobile_ dvc_server_  %a{16,}
devin-api-key                apk_user_ apk_               %b{80,}={0,2}
devin-service-user-token     cog_                         [a-z2-7]{52}
digitalocean-token           dop_v1_ doo_v1_ dor_v1_      %h{64}
docker-swarm-join-token      SWMTKN-1-                    %l{50,60}-%l{24,30}
docker-swarm-unlock-key      SWMKEY-1-                    %b{40,}
dockerhub-access-token       dckr_pat_ dckr_oat_          %u{27,}
doppler-api-token            dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.  [A-Za-z0-9_.-]{40,}
<dropbox-token               sl.                          (?:u\.)?[A-Za-z0-9=_-]{130,}
duffel-api-token             duffel_test_ duffel_live_    [A-Za-z0-9_=-]{43}
dynatrace-api-token          dt0c01. dt0s16.              %a{24}\.%a{64}
<easypost-api-token          EZAK EZTK                    %a{54}
<ebay-client-secret          PRD-                         %h{8}-%h{4}-%h{4}-%h{4}-%h{4,12}
elastic-cloud-api-key        essu_                        %u{60,}={0,2}
elevenlabs-api-key           sk_                          %h{48}
endorlabs-api-key            endr+                        [A-Za-z0-9-]{16}
figma-personal-access-token  figd_                        %u{38,}
flutterwave-secret-key       FLWSECK_TEST- FLWSECK- FLWPUBK_TEST-  %a{12,}(?:-X)?
frameio-api-token            fio-u-                       [A-Za-z0-9_=-]{64}
fullstory-api-key            na1. eu1.                    %b{20,}
<gcp-api-key                 AIza                         %u{35,}
gcp-gemini-api               AQ.Ab8RN6                    %u{44,}
github-token                 gho_ ghu_ ghs_ ghr_          %a{36,}
github-fine-grained-pat      github_pat_                  \w{82,}
github-pat                   ghp_                         %a{36,}
gitlab-token                 glpat- gldt- glrt- glft- glffct- glimt- glsoat- gloas- glagent-  %u{20,}(?:\.[0-9a-z]{2,12}){0,2}
gitlab-token                 glptt-                       %h{40}
gitlab-cicd-job-token        glcbt-                       %a{1,5}_%u{20,}
gitlab-rrt                   GR1348941                    [\w-]{20,}
google-oauth-access-token    ya29.                        [A-Za-z0-9_.-]{30,}
google-oauth-client-secret   GOCSPX-                      %u{28,}
<google-oauth-refresh-token  1//0                         %u{40,}
grafana-api-key              eyJrIjoi                     %b{40,}={0,2}
grafana-cloud-api-token      glc_                         %b{40,}={0,2}
grafana-service-account-token glsa_                       %a{32}_%h{8}
groq-api-key                 gsk_                         %a{52}
harness-api-key              pat. sat.                    %u{22}\.%h{24}\.%a{20}
heroku-api-key               HRKU-                        %u{60}
<huggingface-access-token    hf_                          %a{34,}
huggingface-organization-api-token  api_org_              %a{34}
infracost-api-token          ico-                         %a{32}
intra42-client-secret        s-s4t2ud- s-s4t2af-          %h{64}
<ionic-personal-access-token ion_                         %a{42}
<jwt                         eyJ eyAi                     [A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9/\\_-]{10,}\.(?:[A-Za-z0-9/\\_+-]{10,}={0,2})?
<jwt                         eyJ                          %u{10,}\.%u{20,}\.%u{20,}(?:\.%u{10,}){0,2}
jwt-base64                   ZXlK                         [A-Za-z0-9/\\_+-]{40,}={0,2}
klaviyo-api-key              pk_                          %h{34}%!
langfuse-secret-key          sk-lf-                       %i
langsmith-key                lsv2_pt_ lsv2_sk_            %h{32}_%h{10}
~lichess-personal-access-token  lip_                      \w{16,}
linear-key                   lin_api_ lin_oauth_          %a{40,}
llama-cloud-api-key          llx-                         %a{44,}
mailersend-api-token         mlsn.                        %a{30,}
<mapbox-secret-token         sk.eyJ                       %u{40,}\.%u{20,}
<mem0-api-key                m0-                          (?=.{0,23}?[0-9])(?=.{0,23}?[A-Z])%a{24,44}%!
mercury-api-token            mercury_production_          \w{45,}
mergify-application-key      mergify_application_key_     %u{40,}
midtrans-key                 Mid-server- Mid-client-      (?=\w*?[0-9])\w{10,}
miro-access-token            eyJtaXJv                     [A-Za-z0-9-]{10,64}_%u{20,64}
mongodb-atlas-service-account-secret  mdb_sa_sk_          %u{40}
neon-api-key                 napi_                        %a{64}
netlify-token                nfp_ nfc_ nfo_ nfb_ nfu_     %a{36,}
new-relic-key                NRAK-                        %a{27}%!
new-relic-key                NRJS- NRII-                  [A-Za-z0-9-]{19,32}
notion-api-token             ntn_                         [0-9]{11}%a{35}
npm-access-token             npm_                         %a{36}
nvidia-api-key               nvapi-                       %u{60,}
nylas-api-key                nyk_                         %a{67}
<octopus-deploy-api-key      API-                         [A-Z0-9]{26}%!
onesignal-token              os_v2_app_ os_v2_org_        [a-z2-7]{103}
~onfido-live-api-token       api_live. api_live_ca. api_live_us.  %u{20,}
~openai-key                  sk-proj- sk-svcacct- sk-admin- sk-None-  %u{20,}
openrouter-api-key           sk-or-v                      [0-9]+-%u{20,}
<~openai-key                 sk-                          %u{20,}
openshift-user-token         sha256~                      [\w-]{43}
<pagerduty-authorization-token  u+                        (?=.{0,17}?[0-9])(?=.{0,17}?[A-Z])[A-Za-z0-9_+-]{18}%!
packagist-token              packagist_ort_ packagist_out_ packagist_acs_  %h{64,}
paddle-live-api-key          pdl_live_apikey_ pdl_sdbx_apikey_  %l{26}_%a{22}_%a{3}
perplexity-api-key           pplx-                        %a{48}
~persona-production-api-key  persona_production_          [a-z0-9_-]{20,}
pinecone-api-key             pcsk_                        %a{5,6}_%a{63}
~pinterest-access-token      pina_                        %u{20,}
plaid-api-token              access-sandbox- access-development- access-production-  %i
planetscale-token            pscale_tkn_ pscale_oauth_ pscale_pw_  [\w=.-]{32,}
~polar-token                 polar_at_ polar_oat_ polar_pat_  %u{20,}
posthog-api-key              phx_ phc_                    %u{41,}
postman-api-token            PMAK-                        %h{24}-%h{34}
postman-collection-token     PMAT-                        %a{26}
prefect-api-token            pnu_ pnb_                    %a{36}
~proof-api-key               prf_                         %u{20,}
pulumi-api-token             pul-                         %h{40}
pypi-upload-token            pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZ  [\w-]{50,}
rainforest-pay-api-key       apikey_                      %h{64}
ramp-client-secret           ramp_sec_                    %a{48}
readme-api-token             rdme_                        %l{70}
redirect-pizza-api-token     rpa_                         %a{30,}
<render-api-key              rnd_                         %a{28}%!
<replicate-api-token         r8_                          %a{37}%!
<resend-api-key              re_                          %a{8}_%a{24}%!
rootly-api-key               rootly_                      %h{64}
rubygems-api-token           rubygems_                    %h{48}
samsara-api-token            samsara_api_                 %a{26,}
scalingo-api-token           tk-us-                       [\w-]{48}
segment-public-api-token     sgp_                         %a{64}
<sendgrid-api-token          SG.                          [A-Za-z0-9=_.-]{66,}
sendinblue-api-token         xkeysib-                     %h{64}-%a{16}
sentry-org-token             sntrys_eyJ                   %b{40,}={0,2}_%b{43}
sentry-user-token            sntryu_                      %h{64}
settlemint-access-token      sm_aat_ sm_pat_ sm_sat_      %a{16}%!
shippo-api-token             shippo_live_ shippo_test_    %h{40}
shopify-token                shpat_ shpca_ shppa_ shpss_  %h{32}
slack-app-token              xapp-                        \d+-%a+-\d+-%a{10,}
slack-token                  xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-  (?=[A-Za-z0-9-]*?[0-9])[A-Za-z0-9-]{12,}
slack-config-access-token    xoxe.                        xox[bp]-\d+-%a{140,}
slack-session-cookie         xoxd-                        [\w/\\+%-]{100,}={0,2}
slack-session-token          xoxc-                        \d{9,15}-\d{9,15}-\d{9,15}-%h{64}
sonar-api-token              squ_ sqp_ sqa_               %h{40}
sourcegraph-access-token     sgp_                         (?:(?:%h{16}|local)_)?%h{40}
<square-access-token         sq0atp- sq0csp-              (?=%u*?[0-9])[\w-]{22,}
stripe-access-token          sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_  [A-Za-z0-9+/]{10,}={0,2}
stripe-webhook-secret        whsec_                       %b{32,}={0,2}
supabase-token               sbp_                         [a-z0-9_-]{40}
supabase-secret-key          sb_secret_                   %u{31}
tailscale-key                tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-  %u{20,}
~thunderstore-api-token      tss_                         %u{20,}
togetherai-api-key           tgp_v1_                      %u{43}
typeform-token               tfp_                         [A-Za-z0-9_.=-]{40,}
unkey-root-key               unkey_                       %a{20,}
upcloud-api-token            ucat_                        %a{24,}
upstash-redis-rest-token     AYNgAS                       [A-Za-z0-9+/_-]{26,90}={0,2}
~val-town-api-token          vtwn_                        %u{20,}
<vault-token                 hvs. hvb. hvr.               (?=[\w-]*?[0-9])(?=[\w-]*?[A-Z])[\w-]{24,}
vercel-token                 vca_ vcr_ vci_ vcp_ vck_     %u{56}
wakatime-api-key             waka_                        [A-Za-z0-9-]{36,}
weights-and-biases-api-key   wandb_v1_                    \w{77}
<woocommerce-consumer-secret cs_ ck_                      %h{40}%!
workato-developer-api-token  wrka                         (?:[a-z]{2})?-eyJ%u{8,}\.%u{16,}\.%u{64,}
xai-key                      xai-                         %u{60,}
xendit-api-key               xnd_production_              %a{56,}
<yandex-api-key              AQVN                         %u{35,38}%!
<yandex-access-token         t1.                          [A-Za-z0-9_-]+={0,2}\.%u{86}={0,2}
zuplo-consumer-api-key       zpka_                        %l{32}_%h{8}
"""

_BREAK = r"(?:[ \t]*(?:\r?\n|\\r\\n|\\n)[ \t>]*)"
_ASSIGN = r"""["']?\s{0,3}(?:=>|[:=])\s{0,3}["']?"""
# Nothing that could go on in front of a shape without an opening of its own: %20 and \n are no part of it.
_START = r"(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{2}|\\[nrt])"

# Kind, a text in lower case that must occur, the shape; its group is the secret.
FRAMES = (
    # The first lines of a key, quoted, indented or escaped, are enough for a key; documentation quotes only
    # the frame.
    ("private-key", "private key", r"(-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----" + _BREAK + r"{1,3}(?:[A-Za-z-]+: [^\r\n]*" + _BREAK + r"{1,3}){0,6}[A-Za-z0-9+/=]{4,}(?:" + _BREAK + r"[A-Za-z0-9+/=]{4,})*)(?:[ \t]*[\r\n\\\"']|\s|$)"),
    ("generic-credential-uri", "://", r"""[A-Za-z][A-Za-z0-9+.-]{1,20}://[^:/@\s'"`<>]*:([^/@\s'"`]+)@[A-Za-z0-9\[]"""),
    ("generic-credential-uri", "mongodb", r"""mongodb(?:\+srv)?://[!-9;-~]{3,}?:([!-?A-~]{3,})@[A-Za-z0-9]"""),
    ("netrc-password", "machine", r"machine\s+[A-Za-z0-9.-]+\s+login\s+\S+\s+password\s+(\S{6,})"),
    ("curl-auth-user", "curl", r"""[ \t](?:-u|--user)[= \t]{0,5}["']?([^\s"':]+:[^\s"']{3,})"""),
    ("basic-authorization", "basic", r"""(?i)authorization["']?\s{0,3}[:=]\s{0,3}["']?basic[ \t]{1,3}([a-z0-9+/]{8,}={0,2})"""),
    ("~bearer-token", "bearer", r"(?i)bearer[ \t]{1,3}([a-z0-9._~+/@-]{20,}={0,2})"),
    ("~authorization-token", "authorization", r"""(?i)authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:(?:api-?)?(?:token|key)[ \t=]{1,3})?([a-z0-9._~+/=@-]{20,})"""),
    ("~api-key-header", "-", r"""(?i)(?:x-(?:[a-z]{1,20}-){0,2}|api-?|auth-?)(?:key|token)["']?[ \t]{0,2}[:=][ \t]{0,2}["']?([a-z0-9._~+/=:@-]{20,})"""),
    ("aws-secret-access-key", "secret", r"(?i)secret_?(?:access_?)?key" + _ASSIGN + r"([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)"),
    ("aws-session-token", "token", r"(?i)(?:session|security)_?token" + _ASSIGN + r"([a-z0-9/+._-]{100,}={0,2})"),
    ("azure-storage-account-key", "==", r"(?i)key[^A-Za-z0-9+/]{1,10}([A-Za-z0-9+/]{86}==)"),
    ("azure-shared-access-key", "sharedaccesskey=", r"SharedAccessKey=([A-Za-z0-9+/]{32,100}={0,2})"),
    ("azure-app-configuration", "azconfig.io", r"(?i)azconfig\.io;Id=[^;\s'\"]{4,80};Secret=([A-Za-z0-9+/]{36,100}={0,2})"),
    ("azure-shared-access-signature", "sig=", r"[?&;]sig=([A-Za-z0-9%/+]{40,70}(?:%3[Dd]|=)|%u{43})"),
    ("azure-client-secret", "q~", _START + r"([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})(?:[^A-Za-z0-9_~-]|$)"),
    ("azure-devops-token", "azdo", _START + r"(%a{76}AZDO%a{4})(?:[^A-Za-z0-9]|$)"),
    ("slack-webhook-url", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})"),
    ("discord-webhook", "webhooks/", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/([0-9]{15,20}/%u{60,})"),
    ("microsoft-teams-webhook", "webhook", r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{80,})"),
    ("webhook-url", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/(?:catch|standard)/([A-Za-z0-9/]{10,})"),
    ("webhook-url", "bot/v2/hook/", r"bot/v2/hook/([A-Za-z0-9-]{20,})"),
    ("webhook-url", "send?", r"(?:webhook|robot)/send\?(?:key|access_token)=([A-Za-z0-9-]{20,})"),
    ("webhook-url", "chat.googleapis.com", r"chat\.googleapis\.com/v1/spaces/[^/\s]{4,40}/messages\?([A-Za-z0-9_=&%.-]{40,})"),
    ("webhook-url", "maker.ifttt.com", r"maker\.ifttt\.com/trigger/[^/\s]{1,80}/(?:json/)?with/key/(%u{20,})"),
    ("webhook-url", "/hooks/", r"/hooks/((?:%a{17,24}/)?%a{26,64})(?:[^A-Za-z0-9]|$)"),
    ("~discord-bot-token", ".", _START + r"([MNO]%u{23,27}\.%u{6}\.%u{27,38})(?:[^A-Za-z0-9_-]|$)"),
    ("telegram-bot-token", ":a", _START + r"([0-9]{5,16}:A[A-Za-z0-9_-]{34})(?:[^A-Za-z0-9_-]|$)"),
    ("twilio-api-key", "sk", r"(SK%h{32})(?:[^A-Za-z0-9]|$)"),
    ("facebook-access-token", "|", _START + r"([0-9]{15,16}\|%u{27,40})(?:[^A-Za-z0-9]|$)"),
    ("facebook-page-access-token", "eaa", _START + r"(EAA[MC]%a{100,})"),
    ("~square-access-token", "eaaa", _START + r"(EAAA%u{22,})"),
    ("twitter-bearer-token", "aaaaaaaaaaaaaaaaaaaaaa", r"(A{22}[A-Za-z0-9%]{80,})"),
    ("cursor-api-key", "key_", r"(key_(?:%h{64}|%h{28}))(?:[^A-Za-z0-9]|$)"),
    ("notion-api-token", "secret_", r"(secret_%a{43})(?:[^A-Za-z0-9]|$)"),
    ("mailgun-token", "key-", r"(key-%h{32})(?:[^A-Za-z0-9]|$)"),
    ("~databento-api-key", "db-", _START + r"(db-%a{29})(?:[^A-Za-z0-9]|$)"),
    ("~voyageai-api-key", "-", _START + r"((?:pa|al)-%u{43})(?:[^A-Za-z0-9_-]|$)"),
    ("lob-api-key", "_", _START + r"((?:live|test)_(?:pub_)?%h{31,35})(?:[^A-Za-z0-9]|$)"),
    ("~gocardless-api-token", "live_", _START + r"(live_[A-Za-z0-9_=-]{40})(?:[^A-Za-z0-9]|$)"),
    ("~crates-io-token", "cio", _START + r"(cio%a{32})(?:[^A-Za-z0-9_-]|$)"),
    ("airtable-personal-access-token", "pat", _START + r"(pat%a{14}\.%h{64})"),
    ("~exoscale-api-key", "exo", _START + r"(EXO%a{24,30})(?:[^A-Za-z0-9]|$)"),
    ("hashicorp-tf-api-token", ".atlasv1.", r"(%a{14}\.atlasv1\.[A-Za-z0-9=_-]{60,})"),
    ("maxmind-license-key", "_mmk", r"(%a{6}_%a{29}_mmk)"),
    ("tableau-personal-access-token", "==:", _START + r"(%b{22}==:%a{32})"),
    ("salesforce-access-token", "!", _START + r"(00%a{13}![A-Za-z0-9._-]{80,260})"),
    ("~zai-api-key", ".", _START + r"(%h{32}\.%a{16})(?:[^A-Za-z0-9_-]|$)"),
    ("authress-service-client-access-key", ".acc", r"((?:sc|ext|scauth|authress)_%a{5,30}\.%a{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,})"),
    ("~vault-token", "s.", _START + r"(s\.%a{24})(?:[^A-Za-z0-9.]|$)"),
    ("gitlab-session-cookie", "_gitlab_session", r"_gitlab_session=(%l{32})"),
    ("gitlab-incoming-mail-address-token", "incoming+", r"incoming\+(?:[A-Za-z0-9._-]+-)?\d+-([A-Za-z0-9_-]{20,})-(?:issue(?:-\d+)?|merge-request)@"),
    ("freemius-secret-key", "secret_key", r"""["']secret_key["']\s*=>\s*["'](sk_[^\s"']{29})["']"""),
    ("nuget-config-password", "password", r"""(?i)<add key="(?:ClearText)?Password"\s*value="([^"\n]{8,200})"\s*/>"""),
    ("sidekiq-secret", "contribsys", r"(?i)contribsys__com[\w .'\":=-]{1,20}(%h{8}:%h{8})"),
    ("sidekiq-secret", "contribsys.com", r"https?://(%h{8}:%h{8})@(?:gems|enterprise)\.contribsys\.com"),
    ("kubernetes-secret", "kind:", r"""kind:[ \t]*["']?Secret\b(?s:.{0,500}?)\bdata:((?:\s+[\w.-]+:[ \t]*["']?%b{10,}={0,3}["']?)+)"""),
    ("kubernetes-secret", "kind:", r"""\bdata:((?:\s+[\w.-]+:[ \t]*["']?%b{10,}={0,3}["']?)+)(?s:.{0,500}?)\bkind:[ \t]*["']?Secret\b"""),
    ("flyio-access-token", "flyv1", r"(FlyV1\s[A-Za-z0-9=_,/+-]{100,})"),
    ("bitwarden-client-secret", "_token_apikeyclientsecret", r"""_token_apiKeyClientSecret"\s*:.{0,20}?"([A-Za-z0-9]{10,50})"""),
)  # fmt: skip

# Names of services to whose tokens, without a prefix, a value is assigned.
SERVICES = """
abuseipdb adafruit adobe airtable aiven algolia alibaba aliyun amplitude apollo asana assemblyai auth0 beamer
bitbucket bitly bitrise bittrex box browserstack cf_ circleci civo clerk clickup cloudflare cloudinary codecov cohere
co_api_key coinbase configcat confluent contentful couchbase coveralls crates cursor databento datadog dd_ data.gov
deepgram discord disqus dnkey droneci dropbox ebay elevenlabs endor etsy exoscale facebook fal_ falai fal.ai fal-
fastly figma finicity finnhub flickr freshbooks fullstory fs_api gitea gitter gocardless greptile gumroad hcp_client
heroku highnote honeycomb hubspot hunter ibm bx influx infomaniak instantly intercom jumpcloud kagi klaviyo kraken
kucoin lark launchdarkly lighton linear linkedin linked-in linked_in lob looker mailchimp mailgun mapbox mattermost
mem0 meraki message-bird message_bird messagebird midtrans miro mistral monday mux netlify new-relic new_relic
newrelic ngrok nytimes newyorktimes new-york-times okta ollama openweather opsgenie ovh pagerduty paradigm paypal
pinecone plaid plivo poly postmark private-ai private_ai privateai pyowm rainforest rapidapi razorpay retell scaleway
scw sendbird sentry snowflake sf_token snyk sonar squarespace sslmate stability sumo tableau telegr telnyx travis
twilio twitch twitter typeform upstage upstash vercel virustotal vultr wakatime waka wandb weatherstack
weightsandbiases wiz woo workos yandex zendesk zoho
"""
# Names of secrets of any service; after `key` a hexadecimal number does not count, because it may be a hash.
WORDS = r"secret|token|passw(?:or)?d|passphrase|credential|api[_. -]?key|(?:access|private|auth)[_. -]?key|authtoken|key"
