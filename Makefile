# `make` lists what there is.

.DEFAULT_GOAL := help
.PHONY: help run demo demo-notifications test test-kafka check features sim chaos campaign bench bench-campaign bench-http bench-kafka bench-postgres bench-rabbitmq bench-redis bench-retention bench-table bench-turns coverage screenshots doc clean

CARGO ?= cargo
SEEDS ?= 1000000
FROM ?= 0
STORE ?= memory
MINUTES ?= 5
MESSAGES ?= 50000
CHAOS ?= chaos_on_*
BENCH ?= --store sqlite:target/bench/redeliver.db
BENCH_POSTGRES ?= --backlog 5000000
KAFKA_MESSAGES ?= 200000
REDIS_MESSAGES ?= 200000
JOBS ?= accept_batch,accept_single,drain

FMT := $(CARGO) fmt --all --check
CLIPPY := $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
# Always the whole workspace: a part of it would be built with other features, and everything twice.
TEST := $(CARGO) test --workspace --locked

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build Redeliver and run the e-mail outbox with a mail server to try it on: HTTP_PORT=8086 SINK_PORT=2525
	@scripts/ensure build
	$(CARGO) build --locked --package redeliver-cli
	@HTTP_PORT='$(HTTP_PORT)' SINK_PORT='$(SINK_PORT)' scripts/run

demo: ## Build Redeliver and watch ten messages fail, be retried and end, in a few seconds
	@scripts/ensure build
	$(CARGO) run --locked --package redeliver-cli -- demo $(ARGS)

demo-notifications: ## Watch notifications fail, be retried through Redis and Kafka, and end: the whole loop, in a few seconds
	@scripts/ensure build redis
	$(CARGO) build --locked --package redeliver-cli --bin redeliver --example notifications
	target/debug/examples/notifications demo target/debug/redeliver

test: ## Run everything that must pass, and install what that needs
	@scripts/steps \
	    'what is needed' 'scripts/ensure build check peers' \
	    'format' '$(FMT)' \
	    'lints' '$(CLIPPY)' \
	    'build' '$(TEST) --no-run' \
	    'house rules' '$(TEST) --quiet --test house --test samples' \
	    'all tests' 'scripts/tests $(TEST)'

test-kafka: ## Run what speaks to Kafka against a broker that is a program of its own, compiled first: about 20 minutes, once
	@scripts/ensure build kafka redis
	export REDELIVER_KAFKA_BROKER='$(CURDIR)/.build/tools/bin/tansu' && \
	    $(CARGO) test --locked --package redeliver-transports --test kafka_intake && \
	    $(CARGO) test --locked --package redeliver-cli --test kafka --test notifications --test notifications_demo

check: ## Run what is quick: format, lints, house rules
	@scripts/steps \
	    'what is needed' 'scripts/ensure build check' \
	    'format' '$(FMT)' \
	    'lints' '$(CLIPPY)' \
	    'house rules' '$(CARGO) test --locked --quiet --package redeliver-tidy'

features: ## Check that the binary compiles with none of its features, and with each of them alone
	@scripts/ensure build
	@for features in '' kafka redis kafka-tls; do \
	    $(CARGO) check --locked --package redeliver-cli --no-default-features --features "$$features" || exit 1; done

sim: ## Simulate many seeds: SEEDS=1000000 FROM=0 STORE=memory|sqlite
	@scripts/ensure build
	$(CARGO) run --locked --package redeliver-simulation --bin simulate -- \
	    $(FROM) $$(( $(FROM) + $(SEEDS) )) $(STORE)

chaos: ## Kill, stop, restart and fail over under load, on PostgreSQL, then on a RabbitMQ of three nodes: MINUTES=5 MESSAGES=50000
	@scripts/ensure build peers
	CHAOS_MINUTES='$(MINUTES)' CHAOS_MESSAGES='$(MESSAGES)' \
	    $(CARGO) test --locked --package redeliver-cli --test '$(CHAOS)' -- --nocapture

campaign: ## Plan campaigns of many prospects twice and by two at once, on SQLite and PostgreSQL, and look at every mail: PROSPECTS=100000
	@scripts/ensure build peers
	export CAMPAIGN_PROSPECTS='$(or $(PROSPECTS),100000)' && \
	    $(CARGO) test --locked --package redeliver-stores --test campaigns -- --nocapture && \
	    $(CARGO) test --locked --package redeliver-cli --test campaigns -- planned plan_a_campaign

bench: ## Measure speed and lateness of a release build: BENCH='--store sqlite:PATH'
	@scripts/ensure build
	$(CARGO) build --locked --release --package redeliver-cli
	@rm -rf target/bench && mkdir -p target/bench
	$(CARGO) run --locked --release --quiet --package redeliver-cli -- bench $(BENCH)

bench-http: ## Measure accepting over HTTP from 64 connections by wrk, beside 64 callers within the process, three times
	@scripts/ensure build wrk
	$(CARGO) build --locked --release --package redeliver-cli
	@rm -rf target/bench && mkdir -p target/bench
	@for run in 1 2 3; do target/release/redeliver bench --store sqlite:target/bench/redeliver.db \
	    --only accept_http --wrk --messages 1500000 || exit 1; done

bench-postgres: ## The same on a PostgreSQL of its own, which goes afterwards: BENCH_POSTGRES='--backlog 5000000'
	@scripts/ensure build postgres
	$(CARGO) build --locked --release --package redeliver-cli
	@scripts/bench-postgres $(BENCH_POSTGRES)

bench-campaign: ## Plan and store a campaign on a PostgreSQL of its own beside COPY of the same rows: PROSPECTS=1000000
	@scripts/ensure build postgres
	$(CARGO) build --locked --release --package redeliver-cli
	@scripts/bench-postgres --only campaign --backlog $(or $(PROSPECTS),1000000)

bench-kafka: ## Measure writing to a Kafka cluster beside the bare client, three times: KAFKA_MESSAGES=200000
	@scripts/ensure build
	$(CARGO) run --locked --release --quiet --package redeliver-transports --example kafka -- $(KAFKA_MESSAGES)

bench-rabbitmq: ## Measure republishing and intake beside a bare publisher and a bare consumer on a RabbitMQ of its own, and lateness
	@scripts/ensure build rabbitmq
	$(CARGO) run --locked --release --quiet --package redeliver-cli --example rabbitmq -- $(BENCH_RABBITMQ)

bench-redis: ## Measure writing to a Redis stream beside the bare client, three times: REDIS_MESSAGES=200000
	@scripts/ensure build redis
	$(CARGO) run --locked --release --quiet --package redeliver-transports --example redis -- $(REDIS_MESSAGES)

bench-retention: ## Accept 5,000 a second with a retention of a minute on SQLite, then on PostgreSQL, and count the rows: RETENTION_MINUTES=10
	@scripts/ensure build postgres
	$(CARGO) build --locked --release --package redeliver-cli
	@rm -rf target/bench && mkdir -p target/bench
	target/release/redeliver bench --store sqlite:target/bench/redeliver.db --only retention --minutes '$(or $(RETENTION_MINUTES),10)'
	@scripts/bench-postgres --only retention --minutes '$(or $(RETENTION_MINUTES),10)'

bench-table: ## Measure how fast what is due is found in an application's table of ROWS rows: ROWS=5000000
	@scripts/ensure build peers
	$(CARGO) run --locked --release --quiet --package redeliver-stores --example due_of_table -- $(ROWS)

bench-turns: ## Measure this version and an earlier one in turn, on SQLite and PostgreSQL: BEFORE=COMMIT ROUNDS=5 JOBS=accept_batch,accept_single,drain
	@test -n '$(BEFORE)' || { echo 'say which version to compare with: make bench-turns BEFORE=COMMIT' >&2; exit 1; }
	@scripts/ensure build postgres
	$(CARGO) build --locked --release --package redeliver-cli
	@test -d target/before || git clone --quiet --no-checkout . target/before
	@git -C target/before fetch --quiet && git -C target/before checkout --quiet --detach "$$(git rev-parse '$(BEFORE)')"
	cd target/before && CARGO_TARGET_DIR=target $(CARGO) build --locked --release --package redeliver-cli
	@scripts/bench-turns '$(or $(ROUNDS),5)' --only '$(JOBS)'

coverage: ## Measure which lines the tests reach; fails below the gates in scripts/coverage
	@scripts/ensure build peers coverage
	@scripts/coverage

screenshots: ## Look at every page of the console in a browser, and keep the pictures in docs/console
	@scripts/ensure build check peers
	@mkdir -p docs/console
	@REDELIVER_SCREENSHOTS="$(CURDIR)/docs/console" $(CARGO) test --locked -p redeliver-cli --test console

doc: ## Build the documentation of the code, without warnings
	@scripts/ensure build
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

clean: ## Delete what was built
	$(CARGO) clean
	rm -rf .build
