; A side-scroller for the NES: run right over steps, pits and shelves, past walkers that are jumped over or on.
; Everything happens in the interrupt of the vertical blank.

frame     = $00
mode      = $01   ; 0 waits for START, 1 play, 2 over
pad       = $02   ; A B select start up down left right
xlow      = $03   ; the player's place in the level, in pixels
xhigh     = $04
py        = $05
vy        = $06   ; pixels a frame, signed
grounded  = $07
camlow    = $08   ; the left edge of the picture, in pixels
camhigh   = $09
start     = $0A   ; the level's column at which this game began
kills     = $0B
eon       = $10   ; four walkers
exlow     = $14
exhigh    = $18
ey        = $1C
edir      = $20

; --- scratch -----------------------------------------------------------------------------------------------
drawlow   = $30   ; next column of tiles that is drawn
drawhigh  = $31
pending   = $32
ppulo     = $33
ppuhi     = $34
ground    = $35
shelf     = $36
height    = $37
speed     = $38
newlow    = $39
newhigh   = $3A
newy      = $3B
atlow     = $3C
athigh    = $3D
surface   = $3E
index     = $3F
screenx   = $40
playerx   = $41
shown     = $42
oam       = $0200
line      = $0300

.org $C000
reset:
  SEI
  CLD
  LDX #$FF
  TXS
  INX
  STX $2000
  STX $2001
first:
  BIT $2002
  BPL first
  LDA #0
clear:
  STA $00,x
  STA $0300,x
  INX
  BNE clear
  JSR hide
second:
  BIT $2002
  BPL second
  LDA #$3F
  STA $2006
  LDA #0
  STA $2006
  TAX
colours:
  LDA palette,x
  STA $2007
  INX
  CPX #32
  BNE colours
  LDA #%10100000
  STA $2000
forever:
  JMP forever

; --- every frame -------------------------------------------------------------------------------------------
nmi:
  LDA #0
  STA $2003
  LDA #>oam
  STA $4014
  LDA pending
  BEQ no_column
  LDA #%10100100
  STA $2000
  JSR upload
no_column:
  LDA camhigh
  AND #1
  ORA #%10100000
  STA $2000
  LDA camlow
  STA $2005
  LDA #0
  STA $2005
  INC frame
  JSR read_pad
  LDA mode
  BNE not_waiting
  JSR wait_for_start
  RTI
not_waiting:
  CMP #1
  BNE over
  JSR play
over:
  RTI

read_pad:
  LDA #1
  STA $4016
  LDA #0
  STA $4016
  LDX #8
bits:
  LDA $4016
  LSR
  ROL pad
  DEX
  BNE bits
  RTS

hide:
  LDX #0
  LDA #$F8
hiding:
  STA oam,x
  INX
  BNE hiding
  RTS

; The frame in which START is pressed decides where the game begins. The picture is off while it is drawn.
wait_for_start:
  LDA pad
  AND #$10
  BEQ waited
  LDA #0
  STA $2000
  STA $2001
  LDA frame
  AND #7
  ASL
  ASL
  ASL
  ASL
  ASL
  STA start
  LDA #24
  STA xlow
  LDA #160
  STA py
  LDA #1
  STA mode
building:
  JSR compose
  LDA #%00000100
  STA $2000
  JSR upload
  LDA drawlow
  CMP #64
  BNE building
  LDA #%00011110
  STA $2001
  BIT $2002
  LDA #%10100000
  STA $2000
waited:
  RTS

; --- the background ----------------------------------------------------------------------------------------
; The next column of tiles into line, and a walker where the level has one.
compose:
  LDA drawhigh
  LSR
  LDA drawlow
  ROR
  CLC
  ADC start
  TAX
  LDA tops,x
  STA ground
  LDA shelves,x
  STA shelf
  LDY #0
  STY height
row:
  LDA height
  CMP ground
  BCC air
  BEQ grass
  TXA
  AND #3
  ORA #$10
  BNE put
grass:
  LDA #$20
  BNE put
air:
  CMP shelf
  BNE sky
  LDA #$21
  BNE put
sky:
  LDA #0
put:
  STA line,y
  INY
  STA line,y
  INY
  LDA height
  CLC
  ADC #16
  STA height
  CPY #30
  BNE row
  LDA drawlow
  AND #1
  BNE composed
  LDA walkers,x
  BEQ composed
  JSR add_walker
composed:
  LDA drawlow
  AND #$1F
  STA ppulo
  LDA drawlow
  AND #$20
  LSR
  LSR
  LSR
  ORA #$20
  STA ppuhi
  INC pending
  INC drawlow
  BNE drawn
  INC drawhigh
drawn:
  RTS

upload:
  LDA ppuhi
  STA $2006
  LDA ppulo
  STA $2006
  LDX #0
copy:
  LDA line,x
  STA $2007
  INX
  CPX #30
  BNE copy
  LDA #0
  STA pending
  RTS

; A walker on the ground of the column that is drawn, if one of four places is free.
add_walker:
  LDX #3
place:
  LDA eon,x
  BEQ free
  DEX
  BPL place
  RTS
free:
  INC eon,x
  LDA #0
  STA edir,x
  LDA ground
  SEC
  SBC #16
  STA ey,x
  LDA drawhigh
  STA exhigh,x
  LDA drawlow
  ASL
  ROL exhigh,x
  ASL
  ROL exhigh,x
  ASL
  ROL exhigh,x
  STA exlow,x
  RTS

; X: the level's column at the place atlow, athigh.
column_at:
  LDA athigh
  ASL
  ASL
  ASL
  ASL
  STA height
  LDA atlow
  LSR
  LSR
  LSR
  LSR
  ORA height
  CLC
  ADC start
  TAX
  RTS

; --- play --------------------------------------------------------------------------------------------------
play:
  LDA #2
  STA speed
  LDA pad
  AND #$40
  BEQ walk
  INC speed
walk:
  LDA pad
  AND #1
  BEQ not_right
  LDA xlow
  CLC
  ADC speed
  STA newlow
  LDA xhigh
  ADC #0
  STA newhigh
  LDA #13
  JSR blocked
  BCS vertical
  BCC go
not_right:
  LDA pad
  AND #2
  BEQ vertical
  LDA xlow
  SEC
  SBC speed
  STA newlow
  LDA xhigh
  SBC #0
  STA newhigh
  BCC vertical
  LDA newlow
  CMP camlow
  LDA newhigh
  SBC camhigh
  BCC vertical
  LDA #2
  JSR blocked
  BCS vertical
go:
  LDA newlow
  STA xlow
  LDA newhigh
  STA xhigh

vertical:
  LDA grounded
  BEQ falling
  LDA pad
  AND #$80
  BEQ falling
  LDA #249
  STA vy
falling:
  LDA frame
  AND #1
  BEQ no_gravity
  LDA vy
  CMP #6
  BEQ no_gravity
  INC vy
no_gravity:
  LDA py
  CLC
  ADC vy
  STA newy
  LDA vy
  BMI flying
  LDA xlow
  CLC
  ADC #8
  STA atlow
  LDA xhigh
  ADC #0
  STA athigh
  JSR column_at
  LDA tops,x
  JSR lands
  BCS landed
  LDA shelves,x
  JSR lands
  BCS landed
flying:
  LDA #0
  STA grounded
  LDA newy
  STA py
  CMP #224
  BCC camera
  LDA #2
  STA mode
  BNE camera
landed:
  LDA surface
  STA py
  LDA #0
  STA vy
  LDA #1
  STA grounded

; The picture follows the player to the right, never back.
camera:
  LDA xlow
  SEC
  SBC #96
  STA newlow
  LDA xhigh
  SBC #0
  STA newhigh
  BCC no_scroll
  LDA camlow
  CMP newlow
  LDA camhigh
  SBC newhigh
  BCS no_scroll
  LDA newlow
  STA camlow
  LDA newhigh
  STA camhigh
no_scroll:
  LDA camhigh
  ASL
  ASL
  ASL
  ASL
  ASL
  STA height
  LDA camlow
  LSR
  LSR
  LSR
  ORA height
  STA height
  LDA drawlow
  SEC
  SBC height
  CMP #40
  BCS no_compose
  JSR compose
no_compose:
  LDA xlow
  SEC
  SBC camlow
  STA playerx
  JSR hide
  JSR draw_player
  JMP move_walkers

; Carry: whether there is rock before the player at newlow, newhigh, A pixels from his left edge.
blocked:
  CLC
  ADC newlow
  STA atlow
  LDA newhigh
  ADC #0
  STA athigh
  JSR column_at
  LDA py
  CLC
  ADC #15
  CMP tops,x
  RTS

; Carry: whether the player comes down on what has its top at A on the way from py to newy.
lands:
  SEC
  SBC #16
  STA surface
  CMP py
  BCC misses
  LDA newy
  CMP surface
misses:
  RTS

; --- walkers -----------------------------------------------------------------------------------------------
move_walkers:
  LDX #3
walker:
  STX index
  LDA eon,x
  BEQ next
  LDA exlow,x
  SEC
  SBC camlow
  STA screenx
  LDA exhigh,x
  SBC camhigh
  BEQ in_sight
  BPL next
  LDA #0
  STA eon,x
  BEQ next
in_sight:
  TXA
  EOR frame
  LSR
  BCS touch
  JSR step_walker
touch:
  LDX index
  JSR draw_walker
  LDX index
  JSR meet
next:
  LDX index
  DEX
  BPL walker
  RTS

; One pixel on, or about where the ground isn't level.
step_walker:
  LDA edir,x
  BNE to_the_right
  LDA exlow,x
  SEC
  SBC #1
  STA newlow
  LDA exhigh,x
  SBC #0
  STA newhigh
  JMP look
to_the_right:
  LDA exlow,x
  CLC
  ADC #1
  STA newlow
  LDA exhigh,x
  ADC #0
  STA newhigh
look:
  LDA newlow
  CLC
  ADC #8
  STA atlow
  LDA newhigh
  ADC #0
  STA athigh
  JSR column_at
  LDA tops,x
  LDX index
  SEC
  SBC #16
  CMP ey,x
  BEQ level
  LDA edir,x
  EOR #1
  STA edir,x
  RTS
level:
  LDA newlow
  STA exlow,x
  LDA newhigh
  STA exhigh,x
  RTS

; Who comes down on a walker bounces off it; else the game is over.
meet:
  LDA screenx
  SEC
  SBC playerx
  BCS right_of
  EOR #$FF
  ADC #1
right_of:
  CMP #12
  BCS apart
  LDA ey,x
  SEC
  SBC py
  BCS below
  EOR #$FF
  ADC #1
  CMP #14
  BCS apart
  BCC bitten
below:
  CMP #14
  BCS apart
  CMP #5
  BCC bitten
  LDA vy
  BMI apart
  LDA #0
  STA eon,x
  LDA #252
  STA vy
  INC kills
  RTS
bitten:
  LDA #2
  STA mode
apart:
  RTS

; --- sprites -----------------------------------------------------------------------------------------------
draw_player:
  LDA #0
  STA shown
  LDA playerx
  STA screenx
  LDA py
  LDX #1
  JMP pair
draw_walker:
  LDA ey,x
  LDX #5

; Two sprites side by side at screenx, A with the tiles from X on.
pair:
  LDY shown
  STA oam,y
  STA oam+4,y
  TXA
  STA oam+1,y
  CLC
  ADC #2
  STA oam+5,y
  LDA #0
  STA oam+2,y
  STA oam+6,y
  LDA screenx
  STA oam+3,y
  CLC
  ADC #8
  STA oam+7,y
  TYA
  CLC
  ADC #8
  STA shown
  RTS

palette:
  .byte $21,$17,$2A,$30, $21,$17,$27,$37, $21,$11,$21,$31, $21,$06,$16,$26
  .byte $21,$0F,$16,$30, $21,$30,$28,$16, $21,$06,$26,$30, $21,$00,$10,$30

LEVEL

.org $FFFA
.word nmi, reset, reset
