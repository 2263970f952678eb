"""Programs of which is known what they do: those that no rule asks about go by. Any other name is asked about."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import names
from shared.gate.paths import path
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, certain, shown
from shared.gate.verdict import Decision, Hit

SHELL = names("""
    : . [ [[ alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs
    disown echo enable esac eval exec exit export false fc fg function getopts hash help history if jobs let local
    logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test
    time times trap true type typeset ulimit umask unalias unset until wait while bash sh dash zsh ksh fish ash
    """)
FILES = names("""
    ls ll la dir vdir cat tac nl head tail less more most bat batcat wc sort uniq cut paste join comm tr rev fold fmt
    pr expand unexpand column od hexdump xxd hd strings file stat du df tree exa eza lsd find fd fdfind locate mlocate
    updatedb which whereis whatis apropos man info readlink realpath basename dirname pathchk mktemp touch mkdir rmdir
    rm cp mv ln install tee sponge truncate rimraf split csplit dd sync md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum b2sum cksum sum shasum md5 base32 base64 basenc grep egrep fgrep rg ag ack ripgrep zgrep sed gsed awk
    gawk mawk nawk diff diff3 sdiff cmp colordiff delta patch diffstat wdiff vimdiff tar gtar bsdtar gzip gunzip zcat
    bzip2 bunzip2 bzcat xz unxz xzcat lzma zstd unzstd zstdcat lz4 brotli zip unzip zipinfo 7z 7za unrar ar cpio rsync
    jq yq fx gron xq dasel mlr csvcut csvgrep csvstat csvlook csvjson csvsql in2csv q xsv qsv xmllint xsltproc tidy
    pandoc iconv dos2unix unix2dos recode enca csvkit trash unlink chmod chown chgrp getfacl lsattr shuf seq factor
    numfmt tsort ptx look namei mkfifo cloc tokei scc sloccount loc entr fzf peco gum glow mdcat viddy hyperfine
    parallel xargs gxargs env printenv nohup nice ionice timeout gtimeout stdbuf setsid watch script flock yes sleep
    date cal ncal bc dc expr units rename prename detox fdupes jdupes rdfind ncdu dust duf dutree broot vifm ranger
    nnn mc lf sqlite3_analyzer exiftool identify convert magick mogrify ffmpeg ffprobe sox mediainfo pdftotext pdfinfo
    pdftk qpdf gs ps2pdf dot neato plantuml mmdc gnuplot svgo optipng jpegoptim cwebp inkscape rsvg-convert
    """)
MACHINE = names("""
    ps top htop btop atop free uptime vmstat iostat mpstat sar dmesg lscpu lsblk lsusb lspci lsmod lshw lsof nproc
    arch uname hostname domainname id whoami who w users groups last lastlog finger tty stty tput clear reset logname
    getent locale getconf lsb_release sw_vers system_profiler pgrep pidof pstree pmap fuser ss netstat ip ifconfig
    ping ping6 traceroute tracepath mtr dig nslookup host drill whois curl wget http https xh aria2c getcap ldd nm
    objdump readelf otool size addr2line c++filt ldconfig_p journalctl systemctl service loginctl crontab mount blkid
    findmnt swapon_s kill pkill killall hostnamectl timedatectl sysctl ulimit neofetch fastfetch inxi sensors acpi
    tmux screen logger dirname tzselect say open xdg-open ssh scp sftp ssh-keyscan mosh
    """)
DEVELOPMENT = names("""
    git hub gh glab tig lazygit git-lfs pre-commit commitlint husky lint-staged gitleaks trufflehog semgrep snyk trivy
    grype syft python python2 python3 pypy pypy3 ipython jupyter pip pip2 pip3 pipx pipenv poetry pdm uv uvx hatch rye
    flit conda mamba micromamba virtualenv venv tox nox pytest py.test unittest nose2 coverage mypy pyright pyre
    pytype ruff black isort flake8 pylint pycodestyle pydocstyle bandit autopep8 yapf autoflake pyupgrade vulture
    radon import-linter lint-imports deptry safety pip-audit pip-compile pip-sync cookiecutter copier sphinx-build
    sphinx-quickstart mkdocs pdoc twine build alembic django-admin flask uvicorn gunicorn hypercorn celery streamlit
    gradio invoke inv doit pyinstaller nuitka cython maturin pyenv pyodide dvc mlflow wandb nbconvert node nodejs npm
    npx pnpm pnpx yarn bun bunx deno corepack nvm fnm volta n tsc ts-node tsx esbuild swc webpack vite vitest jest
    mocha ava karma cypress playwright puppeteer eslint prettier biome oxlint stylelint standard xo next nuxt gatsby
    astro svelte-kit remix ng vue expo react-native nodemon pm2 serve http-server turbo nx lerna rush changeset
    changesets rollup parcel babel tailwindcss postcss sass lessc storybook chromatic typedoc jsdoc depcheck ncu
    npm-check npm-check-updates madge knip size-limit browserslist prisma drizzle-kit sequelize knex typeorm nest
    rspack rsbuild tap c8 nyc zx wrangler_dev cargo rustc rustup rustfmt clippy-driver cross trunk wasm-pack
    wasm-bindgen bindgen cbindgen sccache miri go gofmt goimports golangci-lint staticcheck govulncheck gopls dlv air
    goreleaser mockgen sqlc buf protoc gotestsum ginkgo templ java javac jar javap jshell jdeps jlink kotlin kotlinc
    mvn mvnw gradle gradlew ant sbt scala scalac lein clj clojure groovy ktlint detekt checkstyle spotless jenv sdk
    gcc g++ cc c++ clang clang++ cpp ld lld gold as make gmake cmake ctest cpack ninja meson bazel bazelisk buck buck2
    scons autoconf automake autoreconf libtool libtoolize pkg-config pkgconf configure clang-format clang-tidy
    cppcheck valgrind gcov lcov gcovr ccache distcc bear include-what-you-use iwyu conan vcpkg xmake premake5 m4 bison
    flex yacc lex swig doxygen ctags etags cscope gprof ruby irb gem bundle bundler rake rails rspec rubocop sorbet
    srb erb rbenv rvm jekyll solargraph standardrb minitest puma sidekiq php composer phpunit artisan psalm phpstan
    phpcs phpcbf pest symfony drush wp perl cpan cpanm prove perltidy perlcritic perldoc lua luac luajit luarocks
    luacheck stylua busted dotnet nuget msbuild csc fsc fsi mono xbuild paket swift swiftc xcodebuild xcrun swiftlint
    swiftformat pod fastlane carthage xcode-select simctl elixir mix iex erl erlc rebar3 dialyzer gleam ghc ghci cabal
    stack runghc hlint ormolu fourmolu ocaml opam dune ocamlformat r rscript julia zig nim nimble crystal shards dart
    flutter pub v vlang d dub ldc2 dmd octave sage coqc agda lean lake racket raco sbcl guile chicken csi elm elm-test
    elm-format purs spago reason bsc rescript gleam tsort shellcheck shfmt bats hadolint yamllint actionlint
    ansible-lint jsonlint ajv spectral openapi-generator swagger-cli redocly markdownlint markdownlint-cli2 vale
    proselint codespell cspell typos taplo editorconfig-checker checkmake just task mage earthly dagger act watchexec
    watchman reflex modd overmind foreman hivemind honcho procfile direnv asdf mise dotenv envsubst nvim_ docker
    podman nerdctl docker-compose buildah skopeo dive ctop lazydocker kubectl oc helm helmfile kustomize kind minikube
    k3d k9s stern kubeval kubeconform kubectx kubens skaffold tilt argocd flux istioctl terraform tofu terragrunt
    tflint tfsec checkov pulumi cdk sam serverless sls packer vagrant ansible ansible-playbook aws gcloud az doctl
    heroku flyctl fly vercel netlify firebase supabase wrangler gsutil bq psql mysql mariadb sqlite3 mongo mongosh
    redis-cli valkey-cli duckdb clickhouse-client pg_isready createdb pgbench pgcli litecli usql dbmate flyway
    liquibase goose migrate sqlfluff sqlformat pgformatter dbt airflow prefect dagster spark-submit spark-shell hadoop
    hdfs grpcurl grpc_cli evans websocat ab wrk hey vegeta k6 locust siege newman postman insomnia nghttp h2load ghz
    step mkcert openssl protolint asciidoctor hugo zola mdbook gitbook docusaurus eleventy bundle-audit brakeman
    licensee license-checker cdxgen cosign apt apt-get apt-cache dpkg dpkg-query brew yum dnf rpm pacman apk snap
    flatpak nix nix-env nix-shell nix-build nixos-rebuild port choco winget scoop nproc code codium subl atom idea
    pycharm webstorm cursor zed hx helix
    """)
_NUMBERED = re.compile(
    r"(python|pip|pypy|gcc|g\+\+|clang|clang\+\+|clang-format|clang-tidy|llvm-\w+|php|ruby|lua|node|java|ghc"
    r"|perl|psql|go)-?[\d.]+$"
)
_FAMILIES = re.compile(
    r"(?:llvm|git|cargo|python|docker|kubectl|create|eslint|arm-none-eabi|x86_64-linux-gnu|aarch64-linux-gnu"
    r"|wasm|go|pg|protoc-gen|sphinx|mkdocs|pytest|jupyter|dotnet|ansible|clang|cpp|gnu|z|bz|xz)-[\w-]+$"
)
_DANGEROUS_FAMILY = re.compile(r"^(?:git-(?:shell|daemon|http-backend)|docker-machine|ansible-pull)$")


def is_known(program: str) -> bool:
    return (
        program in SHELL or program in FILES or program in MACHINE or program in DEVELOPMENT
        or _NUMBERED.match(program) is not None
        or (_FAMILIES.match(program) is not None and not _DANGEROUS_FAMILY.match(program))
    )  # fmt: skip


def hits(call: Invocation, spoken_of: frozenset[str]) -> Iterator[Hit]:
    """A program that nothing is known of. `spoken_of` are those that rules know; a program of the workspace itself is
    the work, and what it does is bounded by where it runs."""
    if not call.argv:
        return
    program = call.argv[0]
    if not certain(program):
        yield _hit("program.unknown", f"which program {shown(program)} is, is not known", call)
    elif "/" in program and (path(program, call.cwd).inside or not _in_system(program)):
        return
    elif call.program not in spoken_of and not is_known(call.program):
        yield _hit("program.unknown", f"nothing is known here of a program {shown(call.program)}", call)


def _in_system(program: str) -> bool:
    return re.match(r"/(?:usr/|bin/|sbin/|opt/|lib)", program) is not None and UNKNOWN not in program


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])
